"""Delivering models: copying them, running a hook for each, trying again what has failed.

An actuator has a deliverer for each engine. A hook that takes long goes on in the background.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dltools.apply.deliver.copying import DamagedError, copy_checkpoint, read_manifest
from dltools.apply.deliver.delivery import Delivery, DeliveryFiles, Step
from dltools.engine.identity import has_container, own_records
from dltools.engine.interface import Container, Delivers, Engine, GoneError, RefusedError, needed
from dltools.errors import UnavailableError
from dltools.labels import CHECKPOINT, PROTECT, is_true
from dltools.plan.realisation.settings import Settings, as_found
from dltools.plan.records import Action, Result, Status

OnResult = Callable[[Result], None]

_FIRST_S, _LONGEST_S = 10.0, 600.0
"""How long until a delivery that has failed is tried again: at first, and at most."""

KEPT_S = 90 * 86400.0
"""How long a delivery is remembered."""

CHECK_S = 0.25
"""How often to look whether a hook has ended (ours)."""

_AGAIN = "it is tried again"


@dataclass(slots=True)
class _Retry:
    due: float
    pause_s: float


class Deliverer:
    """Delivers models of one engine's containers into a folder, and runs a hook for each."""

    def __init__(
        self,
        engine: Engine,
        files: DeliveryFiles,
        folder: Path,
        hook: Hook | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """What earlier runs have left undone is due at once."""
        self._engine = engine
        self._files = files
        self._folder = folder
        self._hook = hook
        self._clock = clock
        self._retries: dict[str, _Retry] = {}
        self._running: dict[str, tuple[Delivery, RunningHook]] = {}
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
        if delivery.key in self._running:
            return replace(found, status=Status.UNCHANGED, after=_while_hook_runs(delivery))
        if dry_run:
            path = self._folder / delivery.folder_name
            return replace(found, status=Status.PLANNED, after={"delivered": str(path)})
        self._files.write(delivery)
        return self._try(replace(delivery, action_id=action.id))

    def retry(self, on_result: OnResult) -> list[Result]:
        """Report the hooks that have ended, and try again the deliveries that are due."""
        results = self._collected(on_result)
        now = self._clock()
        due = [
            one
            for key, one in self._open.items()
            if key not in self._running
            and (key not in self._retries or self._retries[key].due <= now)
        ]
        for delivery in due:
            result = self._try(delivery)
            if delivery.key not in self._running:
                results.append(result)
                on_result(result)
        return results

    def finish(self, on_result: OnResult) -> list[Result]:
        """Wait for the hooks that run, and report them."""
        return self._collected(on_result, math.inf)

    def stop(self) -> None:
        """Kill the hooks that run; the next run begins them again."""
        while self._running:
            self._running.popitem()[1][1].kill()

    def _collected(self, on_result: OnResult, patience_s: float = 0.0) -> list[Result]:
        """Return what became of the hooks that have ended; wait so long for each."""
        results = []
        for key, (delivery, hook) in list(self._running.items()):
            if hook.is_over(patience_s):
                del self._running[key]
                results.append(self._ended(delivery, hook))
                on_result(results[-1])
        return results

    def seconds_until_due(self) -> float | None:
        """Return how long until `retry` has something to do, None if it never has."""
        if self._running:
            return CHECK_S
        if not self._open:
            return None
        now = self._clock()
        due = (self._retries[key].due if key in self._retries else now for key in self._open)
        return max(0.0, min(due) - now)

    def _try(self, delivery: Delivery) -> Result:
        """Go on with a delivery as far as it goes; a hook that takes long is left running."""
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
        if self._hook is None:
            return self._done(delivery)
        hook = self._hook.begin(Path(delivery.folder))
        self._running[delivery.key] = delivery, hook  # so that a signal finds it from now on
        if not hook.is_over(self._hook.patience_s):
            return replace(_result(delivery, Status.APPLIED), after=_while_hook_runs(delivery))
        del self._running[delivery.key]
        return self._ended(delivery, hook)

    def _ended(self, delivery: Delivery, hook: RunningHook) -> Result:
        """Return what became of a delivery whose hook has ended."""
        if hook.failure is None:
            return self._done(delivery)
        self._put_off(delivery)
        reason = f"delivered, but {hook.failure}; {_AGAIN}"
        return replace(_result(delivery, Status.FAILED), after=_after(delivery), error=reason)

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


def _while_hook_runs(delivery: Delivery) -> Settings:
    return {**_after(delivery), "hook": "running"}


HOOK_PATIENCE_S = 1.0
"""How long a plan waits for a hook to end; then it goes on in the background (ours)."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A command, how long it may take (s), and how long a plan waits for it (s)."""

    command: tuple[str, ...]
    limit_s: float
    patience_s: float = HOOK_PATIENCE_S

    def begin(self, path: Path) -> RunningHook:
        """Run the command, without a shell, with a path as its last argument.

        What it prints goes to standard error: standard output is for results.
        """
        return RunningHook((*self.command, str(path)), self.limit_s)


class RunningHook:
    """A command that was begun: `failure` says why it failed, None if it has not."""

    def __init__(self, command: Sequence[str], limit_s: float) -> None:
        """Begin it, in a process group of its own."""
        self.failure: str | None = None
        self._name = command[0]
        self._limit_s = limit_s
        self._ends = time.monotonic() + limit_s
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                start_new_session=True,
            )
        except OSError as error:
            self.failure = f"the hook {self._name} cannot be run: {error.strerror}"

    def is_over(self, patience_s: float = 0.0) -> bool:
        """Tell whether it has ended; wait so long for that. It is killed, with all of its process
        group, when its time is up."""
        if self._process is None:
            return True
        left_s = max(0.0, self._ends - time.monotonic())
        try:
            code = self._process.wait(min(patience_s, left_s))
        except subprocess.TimeoutExpired:
            if patience_s < left_s:
                return False
            self.kill()
            self.failure = (
                f"the hook {self._name} was killed: it took more than {self._limit_s:g} s"
            )
            return True
        self._process = None
        if code:
            ended = (
                f"was killed by signal {-code}" if code < 0 else f"failed with exit status {code}"
            )
            self.failure = f"the hook {self._name} {ended}"
        return True

    def kill(self) -> None:
        """Kill it and what it has started, if it still runs."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
