"""From allocations to engine settings: shares of a host become quotas, weights or turns.

Which mode is best depends on threads against cores. Threads of one job wait for each other at
barriers, and spin: jobs of several threads that compete for fewer cores lose most of a machine to
waiting, under equal hard quotas as much as in free competition; strongly unequal weights and turns
lose almost nothing (measured: docs/numbers.md). All functions here are pure.

No job starves: an unlimited job has the default weight, equals take turns, and a job that would
else end later than it is promised to gets a turn before all others (`order`).
"""
