"""Delivering models: copying them, trying again what has failed.

An actuator has a deliverer for each engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dltools.apply.deliver.copying import DamagedError, copy_checkpoint, read_manifest
from dltools.apply.deliver.delivery import Delivery, DeliveryFiles, Step
from dltools.engine.interface import Container, Delivers, Engine, GoneError, RefusedError, needed
from dltools.engine.links import has_container, own_records
from dltools.errors import UnavailableError
from dltools.labels import CHECKPOINT, PROTECT, is_true
from dltools.plan.realisation.settings import Settings, as_found
from dltools.plan.records import Action, Result, Status

OnResult = Callable[[Result], None]

_FIRST_S, _LONGEST_S = 10.0, 600.0
"""How long until a delivery that has failed is tried again: at first, and at most."""

KEPT_S = 90 * 86400.0
"""How long a delivery is remembered."""

_AGAIN = "it is tried again"


@dataclass(slots=True)
class _Retry:
    due: float
    pause_s: float


class Deliverer:
    """Delivers models of one engine's containers into a folder."""

    def __init__(
        self,
        engine: Engine,
        files: DeliveryFiles,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """What earlier runs have left undone is due at once."""
        self._engine = engine
        self._files = files
        self._folder = folder
        self._clock = clock
        self._retries: dict[str, _Retry] = {}
        self._open = {delivery.key: delivery for delivery in self._left_open()}

    def _left_open(self) -> list[Delivery]:
        """Return the deliveries that are not done, and forget those that have long been."""
        found = []
        for delivery in own_records(self._engine, self._files.all()):
            if delivery.step is not Step.DONE:
                found.append(delivery)
            elif time.time() - delivery.since > KEPT_S:
                self._files.remove(delivery)
        return found

    def deliver(
        self, action: Action, container: Container, found: Result, *, dry_run: bool = False
    ) -> Result:
        """Deliver a container's model for an action, unless that is done already. `found` names the
        action and its container."""
        if is_true(container.labels.get(PROTECT)):
            return replace(found, error=f"protected by its label {PROTECT}")
        checkpoint = container.labels.get(CHECKPOINT, "").strip()
        if not checkpoint:
            return replace(
                found, error=f"it has no label {CHECKPOINT} that says where its model is"
            )
        ordered = Delivery(
            self._engine.id,
            self._engine.host,
            action.id,
            container.origin,
            container.id,
            container.name,
            container.image,
            checkpoint,
            action.met,
            time.time(),
        )
        delivery = self._files.find(ordered.key) or ordered
        if delivery.step is Step.DONE:
            return replace(found, status=Status.UNCHANGED, after=_after(delivery))
        if dry_run:
            path = self._folder / delivery.folder_name
            return replace(found, status=Status.PLANNED, after={"delivered": str(path)})
        self._files.write(delivery)
        return self._try(replace(delivery, action_id=action.id))

    def retry(self, on_result: OnResult) -> list[Result]:
        """Try again the deliveries that are due."""
        results = []
        now = self._clock()
        due = [
            one
            for key, one in self._open.items()
            if key not in self._retries or self._retries[key].due <= now
        ]
        for delivery in due:
            results.append(self._try(delivery))
            on_result(results[-1])
        return results

    def seconds_until_due(self) -> float | None:
        """Return how long until `retry` has something to do, None if it never has."""
        if not self._open:
            return None
        now = self._clock()
        due = (self._retries[key].due if key in self._retries else now for key in self._open)
        return max(0.0, min(due) - now)

    def _try(self, delivery: Delivery) -> Result:
        """Go on with a delivery as far as it goes."""
        if delivery.step is Step.ORDERED:
            found = _result(delivery, Status.FAILED)
            try:
                delivery = self._copied(delivery)
            except _LostError as error:
                self._close(delivery)
                self._files.remove(delivery)
                return replace(found, error=f"not delivered: {error}")
            except (DamagedError, OSError, RefusedError, UnavailableError) as error:
                self._put_off(delivery)
                return replace(found, error=f"not delivered: {_reason(error)}; {_AGAIN}")
        return self._done(delivery)

    def _done(self, delivery: Delivery) -> Result:
        done = replace(delivery, step=Step.DONE)
        self._files.write(done)
        self._close(done)
        return replace(_result(done, Status.APPLIED), after=_after(done))

    def _copied(self, delivery: Delivery) -> Delivery:
        try:
            chunks = needed(self._engine, Delivers).archive(
                delivery.container_id, delivery.checkpoint
            )
        except GoneError as error:
            if has_container(self._engine, delivery.container_id):
                raise RefusedError(str(error)) from error
            raise _LostError("the container no longer exists") from error
        folder = copy_checkpoint(delivery, chunks, self._folder.absolute())
        copied = replace(delivery, step=Step.COPIED, folder=str(folder))
        self._files.write(copied)
        return copied

    def _put_off(self, delivery: Delivery) -> None:
        key = delivery.key
        before = self._retries.get(key)
        pause = min(2 * before.pause_s, _LONGEST_S) if before else _FIRST_S
        self._retries[key] = _Retry(self._clock() + pause, pause)
        self._open[key] = delivery

    def _close(self, delivery: Delivery) -> None:
        self._retries.pop(delivery.key, None)
        self._open.pop(delivery.key, None)


class _LostError(Exception):
    """A container is gone before its model was delivered."""


def _result(delivery: Delivery, status: Status) -> Result:
    return Result(delivery.action_id, status, delivery.container_id, delivery.container_name)


def _reason(error: Exception) -> str:
    """Return what an error says, without the name of a file that is of this run alone."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _after(delivery: Delivery) -> Settings:
    """Return what a result says of a model that was delivered; its size and digest only as long as
    the manifest is there."""
    manifest = read_manifest(Path(delivery.folder))
    known: dict[str, Any] = {
        name: manifest[name] for name in ("size", "sha256") if name in manifest
    }
    return as_found({"delivered": delivery.folder, **known})
