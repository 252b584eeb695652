"""What a job makes of its cores: threads wait for each other, and lose time in changes of turns.

Threads of one job wait for each other at barriers, and spin while they do. A job of k threads that
has the share f of the CPUs that it could use makes f^(3 (1 - 1/k)) of its CPU time, but not less
than 0.21 of f: one thread loses nothing, two at half the CPUs run at 0.18 of their speed, two at a
third of them at 0.07. tests/sim/test_contention.py has the measured rows, and how far off the law
is. Where a job has more threads than there are CPUs, its threads sleep at barriers (libgomp spins
much less then), and lose nothing. Where jobs take turns, each change costs 0.16 s.

Measured, Docker 20.10, PyTorch trainings on two CPUs: two at once (7.1 s of work each alone) are
done after 35 s in free competition, after 14.5 and 21.9 s with weights 1024 : 300, 8.4 and 16.7 s
with 1024 : 2, 16.5 s in turns of 2 s. Two, three, four and six at once in free competition run at
0.25, 0.09, 0.08 and 0.04 of their speed in the mean.
"""

from __future__ import annotations

from dltools.sim.cpu_sharing import Limits

CHANGE_OVER_S = 0.16
_SPIN = 3.0
LEAST = 0.21
"""What a job of several threads makes of its CPU time at the least (measured: three competing
trainings 0.12 to 0.46, in the mean 0.19, with large batches; with batches of 64 three 0.27, four
0.31 and six 0.25)."""


def exponent(threads: int, spin: float = 1.0) -> float:
    """Return the power of the share of its CPUs with which a job's speed falls."""
    return 1 + _SPIN * spin * (1 - 1 / max(1, threads))


def speed(
    cores: float, threads: int, cpus: float, spin: float = 1.0, without_quota: float | None = None
) -> float:
    """Return the useful CPU seconds per second of a job that has these cores of a host's CPUs.

    `spin` is the part of the measured loss that its threads suffer: 1 where they spin at barriers,
    0 where they sleep (OMP_WAIT_POLICY=passive; measured: two trainings at once take 17.1 s, one
    after the other 19.3 s). `without_quota` are the cores that it would have without its own quota:
    a quota stops all threads of a job at once, so that none waits for another (measured: a training
    held to one of two CPUs, alone on the host, takes twice as long).
    """
    most = min(float(threads), cpus)
    if cores <= 0 or most <= 0:
        return 0.0
    share = min(1.0, cores / most)
    if threads > cpus or spin <= 0:
        return most * share
    unhindered = min(1.0, max(share, (without_quota or 0.0) / most))
    kept = max(LEAST**spin, unhindered ** (exponent(threads, spin) - 1))
    return float(most * share * kept)


def change_over_loss(limits: Limits) -> float:
    """Return the part of its CPU time that a job loses to changes of turns."""
    return 0.0 if limits.group is None else min(1.0, CHANGE_OVER_S / limits.turn_s)
