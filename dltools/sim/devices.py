"""The devices of a simulated host, which are GPUs: how fast jobs run that share one, how they use
them, and what dl-probe sees of that.

Trainings on one GPU, measured by others: 330 pairs on a V100 that fit its memory together (636
entries in the table of throughputs of Gavel, Narayanan et al., OSDI 2020, which has most pairs
twice). Each rate is taken relative to the rate alone. The median of the sum of both rates is 1.37,
from 0.35 to 2; the median of the slower one's part of it is 0.43, from 0.17 to 0.5. Here the sum
and the slower one's part are drawn independently from these two distributions (in the table their
correlation is 0.44); the same two jobs always get the same values. With three or more jobs on a
GPU, each other job multiplies the rate by its factor (ours).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence

from dltools.observations.host_samples import DeviceUse
from dltools.sim.simulated_job import SimulatedJob


def note_use(job: SimulatedJob, span: float) -> None:
    """Count in a job's result how it uses its devices for `span` seconds."""
    if job.portion.device_use > 0:
        job.result.gpu += job.portion.device_use * span * max(1, len(job.devices))


def seen(job: SimulatedJob) -> dict[str, DeviceUse]:
    """Return what dl-probe would see of the devices that a job holds, by name. Those that only a
    trace names stand for CPUs."""
    if not (job.job.device > 0 or job.job.gpu_list):
        return {}
    ratio = job.portion.device_use if job.job.device > 0 else math.nan
    return {f"GPU-{number}": DeviceUse(ratio) for number in job.devices}


def speed_kept(job: SimulatedJob, jobs: Collection[SimulatedJob]) -> float:
    """Return the part of its speed that a job keeps on its devices beside the other jobs of its
    host that use them at the same time."""
    if not _works_on_devices(job):
        return 1.0
    others = (other for other in jobs if other is not job and _works_on_devices(other))
    beside = [other for other in others if not set(job.devices).isdisjoint(other.devices)]
    return kept_beside(job.job.name, [other.job.name for other in beside])


def _works_on_devices(job: SimulatedJob) -> bool:
    return job.is_working and bool(job.devices) and job.job.device > 0


_SUMS = (0.35, 0.68, 0.91, 1.21, 1.28, 1.37, 1.43, 1.53, 1.65, 1.81, 2.0)
_PARTS = (0.17, 0.30, 0.35, 0.38, 0.41, 0.43, 0.45, 0.46, 0.48, 0.5, 0.5)
"""Deciles, from the minimum to the maximum, of the pairs' sums and of the slower one's part."""


def kept_beside(name: str, others: Iterable[str]) -> float:
    """Return the part of its speed that a job keeps on a device beside these other jobs."""
    return math.prod(_of_pair(name, other) for other in others)


def _of_pair(name: str, other: str) -> float:
    """Return the rate of one job beside the other, relative to its rate alone."""
    first, second = sorted((name, other))
    digest = hashlib.blake2b(f"{first}\0{second}".encode(), digest_size=9).digest()
    total = _drawn(_SUMS, digest[:4])
    part = _drawn(_PARTS, digest[4:8])
    is_slower = (digest[8] % 2 == 0) == (name == first)
    return min(1.0, total * (part if is_slower else 1 - part))


def _drawn(deciles: Sequence[float], chance: bytes) -> float:
    """Return a value of the distribution with these deciles, chosen by the bytes of `chance`."""
    at = int.from_bytes(chance, "big") / 2**32 * (len(deciles) - 1)
    low = int(at)
    return deciles[low] + (at - low) * (deciles[low + 1] - deciles[low])
