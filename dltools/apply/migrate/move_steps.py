"""Carrying a migration from step to step, forward or back.

The job runs on one host at most, at any time. The new container starts only when the engine of the
source has said that the old one does not run, and the old one starts again only when the new one is
gone or has never been started. Each step is on record before it is taken, and may be taken again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from dltools.apply.migrate.migration import (
    FailedError,
    FileHeader,
    Migration,
    MigrationFiles,
    Step,
    WaitError,
    engine_of,
    expect_checkpoint,
    expect_running,
    moves_of,
    not_shared,
)
from dltools.apply.migrate.service_steps import ServiceSteps
from dltools.engine.interface import Container, Engine, GoneError, RefusedError
from dltools.engine.parts import Moves, needed
from dltools.labels import ORIGIN

_SETTLE_S = 1.0
"""How long a new container must run, or have ended well, to count as started."""

_KILLED_S = 30.0
"""How long to wait for a container that has been killed."""

_POLL_S = 0.1


@dataclass(slots=True)
class Mover:
    """Moves jobs between hosts. Its methods with names of steps take those of a container's move,
    and those of `ServiceSteps` a service's."""

    engines: Mapping[str, Engine]
    """The engines of this run, by host."""

    files: MigrationFiles
    """Where the record of a migration is kept."""

    sleep: Callable[[float], None] = time.sleep
    """Waits so many seconds."""

    clock: Callable[[], float] = time.monotonic
    """Tells the time (s), from any begin."""

    def carry_out(self, migration: Migration) -> Migration:
        """Take steps until the migration is done or undone, and return it.

        Raises `WaitError` or `UnavailableError` where the next run must go on.
        """
        service = ServiceSteps(self.engines, self.sleep, self.clock)
        steps = service if migration.service else self
        while migration.is_open:
            try:
                migration = getattr(steps, migration.step)(migration)
            except FailedError as error:
                migration = rolled_back(migration, str(error))
            except RefusedError as error:
                if migration.step in (Step.REMOVE, Step.CLEAR, Step.RESUME):
                    raise WaitError(str(error)) from error
                migration = rolled_back(migration, str(error))
            self.files.write(migration)
        return migration

    def create(self, migration: Migration) -> Migration:
        """Create the new container, which must see the job's checkpoint."""
        expect_running(self._source(migration), migration)
        new, moves = self._new_container(migration), moves_of(self.engines, migration.target)
        try:
            new_id = new.id if new else moves.create(migration.container_name, migration.body)
        except (GoneError, RefusedError) as error:
            raise FailedError(f"{migration.target} cannot create it: {error}") from error
        migration = replace(migration, new_id=new_id, step=Step.STOP)
        self._checkpoints(migration)
        return migration

    def stop(self, migration: Migration) -> Migration:
        """Stop the old container."""
        try:
            self._end(self._source(migration), migration.container_id, migration)
        except GoneError as error:
            raise FailedError("the container was removed while dl-apply was stopping it") from error
        checkpoints = self._checkpoints(migration)
        if checkpoints and checkpoints[0] != checkpoints[1]:
            raise not_shared(migration.source, migration.target)
        return replace(migration, step=Step.START)

    def start(self, migration: Migration) -> Migration:
        """Start the new container, and see it run."""
        target = self._target(migration)
        try:
            if not _is_well(target.inspect(migration.new_id)):
                needed(target, Moves).start(migration.new_id)
            until = self.clock() + _SETTLE_S
            while True:
                container = target.inspect(migration.new_id)
                if not _is_well(container):
                    raise FailedError(
                        f"it does not run on {migration.target}: {_ending(container)}"
                    )
                if self.clock() >= until or container.state == "exited":
                    return replace(migration, step=Step.REMOVE)
                self.sleep(_POLL_S)
        except GoneError as error:
            raise FailedError(f"{migration.target} cannot start it: {error}") from error

    def remove(self, migration: Migration) -> Migration:
        """Remove the old container."""
        with suppress(GoneError):
            moves_of(self.engines, migration.source).remove(migration.container_id)
        return replace(migration, step=Step.DONE)

    def clear(self, migration: Migration) -> Migration:
        """Remove the new container, which may run only if its start had been begun."""
        target = self._target(migration)
        new = self._new_container(migration)
        if new is not None:
            with suppress(GoneError):
                self._end(target, new.id, migration)
                needed(target, Moves).remove(new.id)
        was_started = migration.failed_at is Step.START
        return replace(migration, step=Step.RESUME if was_started else Step.UNDONE)

    def resume(self, migration: Migration) -> Migration:
        """Start the old container again, as it was."""
        source = moves_of(self.engines, migration.source)
        try:
            source.set_restart(migration.container_id, migration.restart_policy)
            source.start(migration.container_id)
        except GoneError:
            why = f"{migration.why}; somebody has removed its old container"
            migration = replace(migration, why=why)
        was_started = migration.failed_at is Step.START
        return replace(migration, step=Step.UNDONE if was_started else Step.CLEAR)

    def _end(self, engine: Engine, id_: str, migration: Migration) -> None:
        """Stop a container as `docker stop` does, and return when it does not run; its engine will
        not start it again."""
        moves = needed(engine, Moves)
        moves.set_restart(id_, None)
        if not _has_processes(engine.inspect(id_)):
            return
        for signal, patience_s in (
            (migration.stop_signal, migration.grace_s),
            ("SIGKILL", _KILLED_S),
        ):
            with suppress(RefusedError):  # it has just ended
                moves.signal(id_, signal)
            until = self.clock() + patience_s
            while self.clock() < until:
                if not _has_processes(engine.inspect(id_)):
                    return
                self.sleep(_POLL_S)
        raise WaitError(f"{migration.container_name} does not stop on {engine.host}")

    def _new_container(self, migration: Migration) -> Container | None:
        """Return the new container, None if there is none; one of its name that is not the job's is
        none."""
        with suppress(GoneError):
            container = self._target(migration).inspect(
                migration.new_id or migration.container_name
            )
            if container.id == migration.new_id or container.labels.get(ORIGIN) == migration.origin:
                return container
        return None

    def _checkpoints(self, migration: Migration) -> tuple[FileHeader, FileHeader] | None:
        """Return what the source and the target see of the job's checkpoint, None where it has
        none. Raises `FailedError` where a host sees none."""
        path = migration.checkpoint
        if not path:
            return None
        old = expect_checkpoint(self._source(migration), migration.container_id, path)
        return old, expect_checkpoint(self._target(migration), migration.new_id, path)

    def _source(self, migration: Migration) -> Engine:
        return engine_of(self.engines, migration.source)

    def _target(self, migration: Migration) -> Engine:
        return engine_of(self.engines, migration.target)


def rolled_back(migration: Migration, why: str) -> Migration:
    """Return a migration that goes back from the step at which it is."""
    first = {Step.CREATE: Step.CLEAR, Step.STOP: Step.RESUME, Step.START: Step.CLEAR}
    return replace(migration, step=first[migration.step], failed_at=migration.step, why=why)


def _has_processes(container: Container) -> bool:
    return container.state not in ("created", "exited", "dead")


def _is_well(container: Container) -> bool:
    """Tell whether a container runs, or has run to a good end."""
    if container.state == "exited":
        return not container.ended.exit_code
    return container.state == "running"


def _ending(container: Container) -> str:
    code = f" with status {container.ended.exit_code}" if container.ended.exit_code else ""
    error = f", {container.ended.error}" if container.ended.error else ""
    return f"{container.state}{code}{error}"
