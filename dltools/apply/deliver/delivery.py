"""Deliveries that were ordered: a file for each, which stays for ninety days.

So a model is delivered once for each container and target, whatever ends a run of dl-apply, and
what has failed is tried again.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from dltools.engine.state_records import Records
from dltools.plan.signals.targets import TargetMet


class Step(StrEnum):
    """How far a delivery has come."""

    ORDERED = "ordered"
    COPIED = "copied"  # the model is there, and that is not on record as done yet
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One model to be delivered: `action_id` is that of the action which ordered it, `since` (s
    since 1970) when that was, `origin` the first container of the job, `checkpoint` the path inside
    the container, `folder` where the copy is, "" before there is one."""

    engine: str
    host: str
    action_id: int
    origin: str
    container_id: str
    container_name: str
    image: str
    checkpoint: str
    met: TargetMet | None
    since: float
    step: Step = Step.ORDERED
    folder: str = ""

    @property
    def key(self) -> str:
        """What tells it from other jobs' deliveries and targets; a job that moves keeps it."""
        met = self.met
        target = f"{met.metric} {met.objective} {met.target!r}" if met else ""
        return f"{self.origin}-{hashlib.sha256(target.encode()).hexdigest()[:8]}"

    @property
    def folder_name(self) -> str:
        """The name of the folder that it is delivered as."""
        parts = [self.container_name, self.origin[:12]]
        parts += [self.met.metric, f"{self.met.target:g}"] if self.met else []
        return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(parts))[:200]


class DeliveryFiles(Records[Delivery]):
    """The records of deliveries in one directory."""

    record_type = Delivery
    what = "record of a delivery"

    def key(self, record: Delivery) -> str:
        """Return the delivery's key: a container may have several."""
        return record.key
