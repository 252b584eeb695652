"""From an allocation to engine settings: a share of a node becomes a quota or a weight."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from dltools.plans import Settings
from dltools.policy.base import Grant
from dltools.schema import DEFAULT_CPU_WEIGHT


class Mode(StrEnum):
    """How shares are enforced."""

    QUOTA = "quota"
    WEIGHT = "weight"


LEAST_CPUS = 0.01
"""Smallest quota in cores: the kernel's least quota of 1 ms in a period of 100 ms."""

LEAST_WEIGHT, MOST_WEIGHT = 2.0, 262144.0
"""Bounds of Docker's CPU shares."""


def realize(mode: Mode, grants: Mapping[str, Grant], cpus: float) -> dict[str, Settings]:
    """Return the settings of each job that is granted a share, on a node of `cpus` CPUs.

    `quota`: a hard cap of share * cpus cores, to 0.001; a share of 1 takes it off. Isolates, and
    leaves CPU idle where a job does not use its share.
    `weight`: weights in proportion to the shares, 1024 for an average share and for a share of 1.
    Work-conserving: what one job leaves the others take.
    """
    if cpus <= 0:
        return {}
    return {
        job: _quota(grant.share, cpus) if mode is Mode.QUOTA else _weight(grant.share, len(grants))
        for job, grant in grants.items()
        if grant.share is not None
    }


def _quota(share: float, cpus: float) -> Settings:
    cores = round(max(LEAST_CPUS, share * cpus), 3)
    return {"cpus": None if cores >= cpus else cores}


def _weight(share: float, n: int) -> Settings:
    if share >= 1:
        return {"cpu_weight": DEFAULT_CPU_WEIGHT}
    weight = min(MOST_WEIGHT, max(LEAST_WEIGHT, DEFAULT_CPU_WEIGHT * share * n))
    return {"cpu_weight": float(round(weight))}
