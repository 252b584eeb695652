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

from dltools.engine.state_folder import StateFolder
from dltools.errors import DataError
from dltools.notation.json_text import parse_json
from dltools.plan.signals.targets import TargetMet

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
        self._folder = StateFolder(directory)

    def write(self, delivery: Delivery) -> None:
        """Write down how far a delivery has come. Raises `OutputError`."""
        text = json.dumps({"v": VERSION, **asdict(delivery)})
        self._folder.write(_name(delivery), text.encode())

    def known(self, delivery: Delivery) -> Delivery | None:
        """Return what is written of the same delivery, None if it is new. Raises `DataError`."""
        return self._load(_name(delivery))

    def all(self, engine: str) -> list[Delivery]:
        """Return the deliveries of one engine's containers, by name. Raises `DataError`."""
        found = [self._load(name) for name in self._folder.names()]
        mine = [delivery for delivery in found if delivery and delivery.engine == engine]
        return sorted(mine, key=lambda delivery: (delivery.container_name, delivery.key))

    def remove(self, delivery: Delivery) -> None:
        """Forget a delivery."""
        self._folder.remove(_name(delivery))

    def _load(self, name: str) -> Delivery | None:
        text = self._folder.read(name)
        return None if text is None else _parsed(text, self._folder.path / name)


def _name(delivery: Delivery) -> str:
    return f"{delivery.key}.json"


def _parsed(text: bytes, path: Path) -> Delivery:
    try:
        data: Any = parse_json(text)
        if data.pop("v") != VERSION:
            raise ValueError("it has another version")
        met = data["met"]
        data["met"] = None if met is None else TargetMet(**met)
        data["step"] = Step(data["step"])
        return Delivery(**data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: damaged record of a delivery: {error}") from error
