"""The command lines of the five tools. Nothing else in dltools prints to people, or exits.

Each tool has a package, which says what the tool does and how it may exit, with the same modules:
`request` declares the options, `run` does what they ask for, `tables` lays out results. Other
modules of a package serve that tool alone; what several tools share is in this folder.
"""
