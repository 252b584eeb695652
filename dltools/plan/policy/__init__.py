"""Scheduling policies: pure functions from what was observed to each job's share of a host.

Nothing here knows Docker, a file or a clock: time is the data's.
"""
