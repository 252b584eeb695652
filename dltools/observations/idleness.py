"""From which use of CPU on a container counts as busy, and below which as idle.

Each question has a bound of its own, since a wrong answer costs something else each time (all of it
ours):

- Does a container that has reported nothing use CPU? It is busy from `BUSY_CORES` on, and silent
  below `SILENT_CORES`: in between nothing changes, so that a job which loads its data does not come
  and go as a competitor.
- Does a job sleep, so that others need not make room for it? It wants less than `QUIET_CORES` for
  `QUIET_S`: a notebook that computes for 50 ms each second costs others little.
- Does a container sleep in its turn? It wants less than `ASLEEP_CORES` for `ASLEEP_S`, sooner than
  above, as a turn lasts seconds; it is awake when it wants `AWAKE_CORES` for `AWAKE_S`, more than
  above, so that it does not come and go at one bound.
- Does it stand still, so that its owner should be told? It uses less than `STILL_CORES`: a wrong
  alarm costs trust, and a validation computes.
"""

BUSY_CORES, SILENT_CORES = 0.2, 0.05

LOOK_S = 0.5
"""Between samples that are nearer (s) no container is found silent."""

QUIET_CORES, QUIET_S = 0.25, 4.0

LEAST_LOOK_S = 0.75
"""Least time (s) between two samples that can show sleep: a burst may fill a shorter one."""

ASLEEP_CORES, ASLEEP_S = 0.25, 1.5

AWAKE_CORES, AWAKE_S = 0.4, 0.5

STILL_CORES = 0.05
