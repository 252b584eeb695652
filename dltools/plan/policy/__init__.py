"""Scheduling policies: pure functions from what was observed to each job's share of a host.

`interface` says what a policy is, `registry` knows all by name. Each policy has a file, with what
it alone needs; what several need is here (`shares`, `by_resource`) or in `plan.signals`.

Nothing here knows Docker, a file or a clock: time is the data's.
"""
