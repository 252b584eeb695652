"""Arms: what jobs run under. An arm is a name and the options of dl-plan, None for Docker alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from dltools.sim.workload import Workload


@dataclass(frozen=True)
class Arm:
    """`plan`: the options of dl-plan; None where nothing but dl-probe runs."""

    name: str
    plan: tuple[str, ...] | None = None

    @property
    def simulated(self) -> tuple[str, ...]:
        """The options of dl-sim that say the same."""
        return ("-p", "noop") if self.plan is None else self.plan


NOOP = Arm("noop")
ARMS = {
    arm.name: arm
    for arm in (
        NOOP,
        Arm("flowcon-quota", ("-p", "flowcon", "--realize", "quota", "--set", "early=false")),
        Arm("flowcon", ("-p", "flowcon")),
        Arm("srtf", ("-p", "srtf")),
        Arm("srtf-rotate", ("-p", "srtf", "--realize", "rotate")),
        Arm("fair-rotate", ("-p", "fair", "--realize", "rotate")),
        Arm("tradl", ("-p", "tradl")),
        Arm("dqoes", ("-p", "dqoes", "--set", "itval=4")),
        Arm("dqoes-quota", ("-p", "dqoes", "--realize", "quota", "--set", "itval=4")),
        Arm("dqoes-fixed", ("-p", "dqoes", "--set", "itval=4", "--set", "gain=fixed")),
    )
}
TRAININGS = ("noop", "flowcon-quota", "flowcon", "srtf", "fair-rotate")


def arms_for(workload: Workload, asked: str | None) -> Sequence[Arm]:
    """Return the arms that were asked for: names, and NAME=OPTIONS, separated by commas; else those
    that suit the jobs. Docker alone is always the first. Raises `KeyError`."""
    if asked is not None:
        arms = [_named(one.strip()) for one in asked.split(",") if one.strip()]
        return [NOOP, *(arm for arm in arms if arm != NOOP)]
    if any(job.serves for job in workload.jobs):
        names: tuple[str, ...] = ("noop", "dqoes-fixed", "dqoes", "dqoes-quota")
    else:
        has_targets = any(job.first is not None for job in workload.jobs)
        names = (*TRAININGS, "tradl") if has_targets else TRAININGS
    return [ARMS[name] for name in names]


def _named(text: str) -> Arm:
    name, has_options, options = text.partition("=")
    return Arm(name, tuple(shlex.split(options))) if has_options else ARMS[name]
