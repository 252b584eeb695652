"""How long a container runs while others wait for their turns, unless a user says otherwise."""

TURN_S = 5.0
"""Turn of jobs of equal standing that wait by weights (s). Under `rotate` no turn ends sooner
because others have waited too long."""

MEAN_TURN_S = 8.0
"""Mean turn of `rotate` without --quantum (s): changing over takes 0.16 s (measured), 2 % of it."""

SHORTEST_TURN = 0.1
"""Shortest turn of `rotate`, as a part of the mean one."""
