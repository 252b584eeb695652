"""Families of log formats, one file each. A family is a module with a class `Log`; the module
`match`, one folder up, names the families.
"""
