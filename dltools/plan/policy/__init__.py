"""Scheduling policies: pure functions from what was observed to who gets what share of a node.

Nothing here knows Docker, a file or a clock: time is the data's.
"""
