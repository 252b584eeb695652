"""Arms: what the jobs run under. An arm is a name and options of dl-plan; none: nothing moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

INTERVAL_S = 1
"""Seconds between two samples."""

_SCALED = ("--set", "itval=3", "--set", "cooldown=6", "--set", "pause=5")
"""The jobs take two minutes, not ten: SpeCon's times are shorter in the same way."""


@dataclass(frozen=True)
class Arm:
    """`plan`: the options of dl-plan, and of dl-sim that say the same."""

    name: str
    plan: Sequence[str] = ()

    @property
    def simulated(self) -> Sequence[str]:
        """The options of dl-sim."""
        return self.plan or ("-p", "noop")


ARMS = {arm.name: arm for arm in (Arm("noop"), Arm("specon", ("-p", "specon", *_SCALED)))}
