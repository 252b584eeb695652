"""Delivering models: a job's checkpoint is copied out of its container, as a tar archive.

The engine sends the checkpoint, a file or a folder, as a tar stream. It becomes a file of the
delivery's name, whole or not at all: so where the file is, the delivery has been made. An actuator
has a deliverer for each engine.
"""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dltools.actions.plans import Action, OnResult, Result, Status
from dltools.actions.settings import Settings
from dltools.engine.interface import Container, Engine, GoneError, RefusedError
from dltools.engine.links import has_container
from dltools.engine.parts import Delivers, needed
from dltools.errors import DataError, DltoolsError
from dltools.labels import CHECKPOINT, PROTECT, is_true
from dltools.whole_files import atomic_file, sync_folder

AGAIN_S = 60.0
"""How long until a delivery that has failed is tried again (ours)."""

_RESERVE = 1 << 30
"""Bytes of the disk that stay free for others."""

_END = bytes(1024)
"""What a whole tar stream ends with."""


@dataclass(frozen=True, slots=True)
class _Delivery:
    """One model to be delivered: what ordered it, the path inside the container, that of the copy,
    and when it is tried again (s)."""

    action: Action
    checkpoint: str
    path: Path
    due: float = 0.0


class Deliverer:
    """Delivers models of one engine's containers into a folder."""

    def __init__(
        self, engine: Engine, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` returns seconds."""
        self._engine = engine
        self._folder = folder.absolute()
        self._clock = clock
        self._failed: dict[Path, _Delivery] = {}

    def deliver(
        self, action: Action, container: Container, result: Result, *, dry_run: bool = False
    ) -> Result:
        """Deliver a container's model for an action, unless that is done already. `result` names
        the action and its container."""
        if is_true(container.labels.get(PROTECT)):
            return replace(result, error=f"protected by its label {PROTECT}")
        checkpoint = container.labels.get(CHECKPOINT, "").strip()
        if not checkpoint:
            reason = f"it has no label {CHECKPOINT} that says where its model is"
            return replace(result, error=reason)
        path = self._folder / _file_name(action, container)
        after: Settings = {"delivered": str(path)}
        if path.exists():
            return replace(result, status=Status.UNCHANGED, after=after)
        if dry_run:
            return replace(result, status=Status.PLANNED, after=after)
        return self._try(_Delivery(action, checkpoint, path))

    def retry(self, on_result: OnResult) -> list[Result]:
        """Try again the deliveries that are due."""
        now = self._clock()
        results = []
        for delivery in [failed for failed in self._failed.values() if failed.due <= now]:
            results.append(self._try(delivery))
            on_result(results[-1])
        return results

    def seconds_until_due(self) -> float | None:
        """Return how long until `retry` has something to do, None if it never has."""
        due = min((delivery.due for delivery in self._failed.values()), default=None)
        return None if due is None else max(0.0, due - self._clock())

    def _try(self, delivery: _Delivery) -> Result:
        action = delivery.action
        result = Result(action.id, Status.FAILED, action.container_id, action.container_name)
        self._failed.pop(delivery.path, None)
        try:
            after = self._copied(delivery)
        except GoneError:
            return replace(result, error="not delivered: the container no longer exists")
        except (DltoolsError, OSError) as error:
            self._failed[delivery.path] = replace(delivery, due=self._clock() + AGAIN_S)
            reason = (isinstance(error, OSError) and error.strerror) or error
            return replace(result, error=f"not delivered: {reason}; it is tried again")
        return replace(result, status=Status.APPLIED, after=after)

    def _copied(self, delivery: _Delivery) -> Settings:
        """Copy a checkpoint, and return what a result says of the copy."""
        id_, path = delivery.action.container_id, delivery.path
        try:
            chunks = needed(self._engine, Delivers).archive(id_, delivery.checkpoint)
        except GoneError as error:
            if has_container(self._engine, id_):
                raise RefusedError(str(error)) from error
            raise
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f".{path.name}.*"):  # by a run that was killed
            left.unlink()
        sha256, size, tail = hashlib.sha256(), 0, b""
        with atomic_file(path) as file:
            for chunk in chunks:
                _expect_room(path.parent, len(chunk))
                file.write(chunk)
                sha256.update(chunk)
                size, tail = size + len(chunk), (tail + chunk)[-len(_END) :]
            if tail != _END:
                raise DataError("the engine's archive was cut off")
        sync_folder(path.parent)
        return {"delivered": str(path), "size": size, "sha256": sha256.hexdigest()}


def _file_name(action: Action, container: Container) -> str:
    """Return the name of a delivery, by its target and its job, which keeps it when it moves."""
    parts = [container.name, container.origin[:12]]
    parts += [action.met.metric, f"{action.met.target:g}"] if action.met else []
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(parts))[:200] + ".tar"


def _expect_room(folder: Path, size: int) -> None:
    """Raise OSError where so many bytes more would fill the disk: a job can make a file of any size
    for nothing, if it has holes."""
    if shutil.disk_usage(folder).free < size + _RESERVE:
        raise OSError(errno.ENOSPC, "less than 1 GiB of the disk would be free")
