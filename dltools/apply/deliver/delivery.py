"""Deliveries that were ordered: a file for each, which stays for ninety days.

So a model is delivered once for each container and target, whatever ends a run of dl-apply, and
what has failed is tried again.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dltools.errors import DataError, OutputError
from dltools.files import atomic_file
from dltools.plan.policy.target_met import TargetMet

VERSION = 1


class Step(StrEnum):
    """How far a delivery has come."""

    ORDERED = "ordered"
    COPIED = "copied"  # the model is there; the hook has not succeeded yet
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


class DeliveryFiles:
    """The files of deliveries, all in one directory."""

    def __init__(self, directory: Path) -> None:
        """The directory is created with the first file."""
        self._directory = directory

    def write(self, delivery: Delivery) -> None:
        """Write down how far a delivery has come. Raises `OutputError`."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot create {self._directory}: {error.strerror}") from error
        with atomic_file(self._path(delivery)) as file:
            file.write(json.dumps({"v": VERSION, **asdict(delivery)}).encode())

    def known(self, delivery: Delivery) -> Delivery | None:
        """Return what is written of the same delivery, None if it is new. Raises `DataError`."""
        path = self._path(delivery)
        return _load(path) if path.exists() else None

    def all(self, engine: str) -> list[Delivery]:
        """Return the deliveries of one engine's containers, by name. Raises `DataError`."""
        found = [_load(path) for path in sorted(self._directory.glob("*.json"))]
        mine = [delivery for delivery in found if delivery.engine == engine]
        return sorted(mine, key=lambda delivery: (delivery.container_name, delivery.key))

    def remove(self, delivery: Delivery) -> None:
        """Forget a delivery."""
        self._path(delivery).unlink(missing_ok=True)

    def _path(self, delivery: Delivery) -> Path:
        return self._directory / f"{delivery.key}.json"


def _load(path: Path) -> Delivery:
    try:
        data: Any = json.loads(path.read_bytes())
        if data.pop("v") != VERSION:
            raise ValueError("it has another version")
        met = data["met"]
        data["met"] = None if met is None else TargetMet(**met)
        data["step"] = Step(data["step"])
        return Delivery(**data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path}: damaged record of a delivery: {error}") from error
