"""Scheduling policies: pure functions from what was observed to each job's share of a host.

`interface` says what a policy is, `registry` finds a policy by its name. Each policy has a file of
its own. What several policies use is in `shares`, `by_resource`, `by_user` and `plan.signals`.

Nothing here knows Docker, a file or a clock: time is the data's.
"""
