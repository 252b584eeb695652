"""The command lines of the five tools. Nothing else in dltools prints to people, or exits.

Each tool has a package with the same modules: `command` declares the options and exit codes, `run`
does what they ask for, `tables` lays out results. Other modules of a package serve that tool alone;
what several tools share is in this folder.
"""
