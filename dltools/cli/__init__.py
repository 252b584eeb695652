"""The command lines of the five tools. Nothing else in dltools prints to people, or exits.

Each tool has a package, in which the same name means the same: `command` declares the options and
exit codes, `run` does what they ask for, `tables` says how results look. What only one tool has
stands beside them; what several share stands in this folder.
"""
