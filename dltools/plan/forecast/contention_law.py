"""What a job loses by having only a part of the CPUs that it could use.

Threads of one job wait for each other at barriers, and spin while they wait. A job of k threads
with the share f of the CPUs that it could use makes useful a part f^(3 (1 - 1/k)) of its CPU time,
but not less than 0.21. One thread loses nothing; two threads on half their CPUs run at 0.18 of
their speed, on a third at 0.07. tests/sim/test_cpu_sharing.py has the measured rows and the errors
of this law. The forecast and the simulator go by it.
"""

from __future__ import annotations

_SPIN = 3.0
LEAST_USEFUL = 0.21
"""Least useful part of the CPU time of a job of several threads (measured: three competing
trainings 0.12 to 0.46, mean 0.19, with large batches; with batches of 64 three 0.27, four 0.31, six
0.25)."""


def spin_exponent(threads: float, spin: float = 1.0) -> float:
    """Return the exponent of the law for a job of so many threads. `spin`: the part of the measured
    loss that they suffer, 1 if they spin at barriers, 0 if they sleep."""
    return _SPIN * spin * (1 - 1 / max(1.0, threads))


def useful_part(share: float, exponent: float, spin: float = 1.0) -> float:
    """Return the useful part of the CPU time of a job that has this share of the CPUs that it could
    use."""
    if exponent <= 0 or share >= 1:
        return 1.0
    return float(max(LEAST_USEFUL**spin, max(0.0, share) ** exponent))
