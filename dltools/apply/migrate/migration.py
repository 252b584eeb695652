"""A migration: its record on disk, and what the steps of all kinds of moves share.

A record is written before each step. Whatever ends a run of dl-apply, the next one knows where the
job may run, and goes on from there.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dltools.engine.interface import Engine, GoneError
from dltools.engine.parts import Delivers, Moves, needed
from dltools.engine.state_records import Records
from dltools.errors import DataError, DltoolsError


class Step(StrEnum):
    """What is being done; the comment says where the job may run meanwhile."""

    CREATE = "create"  # the new container: on the source
    STOP = "stop"  # the old container: on the source
    START = "start"  # the new container: on the target
    REMOVE = "remove"  # the old container: on the target
    DONE = "done"  # on the target
    CLEAR = "clear"  # remove the new container: where `failed_at` says
    RESUME = "resume"  # start the old container: on the source
    UNDONE = "undone"  # on the source


@dataclass(frozen=True, slots=True)
class Migration:
    """One job on its way."""

    action_id: int
    """The number of the action that ordered it."""

    source: str
    """The host that it leaves."""

    target: str
    """The host that it goes to."""

    container_id: str
    """The id of the old container, on the source."""

    container_name: str
    """The name of the old container."""

    body: Mapping[str, Any]
    """What the engine creates the new container from."""

    restart_policy: Mapping[str, Any]
    """When the source starts the old container again by itself, as it was before the move."""

    origin: str
    """What stays the same when the job moves: see `Container.origin`."""

    checkpoint: str = ""
    """The path of the job's checkpoint in the container, "" if it is not looked at."""

    grace_s: float = 10.0
    """How long the job may take to stop after its signal (s)."""

    stop_signal: str = "SIGTERM"
    """The signal that asks the job to stop."""

    step: Step = Step.CREATE
    """What is being done."""

    new_id: str = ""
    """The id of the new container, on the target; "" before there is one."""

    failed_at: Step | None = None
    """The step that failed, where the move is rolled back; else None."""

    why: str = ""
    """The reason why it failed, "" where it has not."""

    since: str = ""
    """When it was begun (RFC 3339)."""

    service: str = ""
    """The id of the Swarm service that is moved, "" for a container that is in none."""

    constraints: tuple[str, ...] = ()
    """Where the service's tasks could run before the move; () for a container."""

    earlier: str = ""
    """The one of `constraints` that a move before has set, "" for none."""

    constraint: str = ""
    """The one that holds the service on the target, "" for a container."""

    @property
    def new_constraints(self) -> tuple[str, ...]:
        """The constraints that hold a service on the target."""
        kept = (constraint for constraint in self.constraints if constraint != self.earlier)
        return (*kept, self.constraint)

    @property
    def is_open(self) -> bool:
        """Whether anything is left to be done."""
        return self.step not in (Step.DONE, Step.UNDONE)

    @property
    def whereabouts(self) -> str:
        """Where the job is, in words."""
        if self.step is Step.START or (self.step is Step.CLEAR and self.failed_at is Step.START):
            return f"it is stopped on {self.source}, and may run on {self.target}"
        if self.step is Step.STOP:
            return f"it may be stopped on {self.source}"
        if self.step is Step.RESUME:
            return f"it is stopped on {self.source}"
        return f"it runs on {self.target if self.step is Step.REMOVE else self.source}"


class MigrationFiles(Records[Migration]):
    """The records of migrations in one directory."""

    record_type = Migration
    what = "record of a migration"


class FailedError(Exception):
    """A step cannot be taken, and the migration is to be rolled back; the message says why."""


class WaitError(DltoolsError):
    """A step cannot be taken now, and must be taken again later; the message says why."""


def engine_of(engines: Mapping[str, Engine], host: str) -> Engine:
    """Return the engine of a host. Raises `WaitError` where this run has none."""
    try:
        return engines[host]
    except KeyError:
        raise WaitError(f"host {host} is not among the hosts of this run") from None


def moves_of(engines: Mapping[str, Engine], host: str) -> Moves:
    """Return the part of a host's engine that moves containers. Raises as `engine_of` does."""
    return needed(engine_of(engines, host), Moves)


_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class FileHeader:
    """A file's or folder's name, size in bytes and time of the last change (s since 1970)."""

    name: str
    size: int
    modified: float


def first_header(chunks: Iterator[bytes]) -> FileHeader:
    """Return the header of the first member of an archive, and read no further than that.

    Raises `DataError` where there is none.
    """
    read = b""
    for chunk in chunks:
        read += chunk
        try:
            member = tarfile.open(fileobj=io.BytesIO(read), mode="r:").next()  # noqa: SIM115
        except tarfile.TarError:
            member = None
        if member is not None:
            return FileHeader(member.name, member.size, member.mtime)
        if len(read) > _MOST_BYTES:
            break
    raise DataError("the engine's archive does not begin with a file or a folder")


def expect_running(engine: Engine, migration: Migration) -> None:
    """Raise `FailedError` where a container that is to move runs no more."""
    try:
        if engine.inspect(migration.container_id).state != "running":
            raise FailedError("the container has stopped since the plan was made")
    except GoneError as error:
        raise FailedError("the container no longer exists") from error


def expect_checkpoint(engine: Engine, id_: str, path: str) -> FileHeader:
    """Return what a container's checkpoint is. Raises `FailedError` where there is none."""
    try:
        return first_header(needed(engine, Delivers).archive(id_, path))
    except (GoneError, DataError) as error:
        raise FailedError(f"there is no checkpoint {path} on {engine.host}") from error


def not_shared(source: str, target: str) -> FailedError:
    """Return what to raise where two hosts have different checkpoints."""
    return FailedError(
        f"{target} has a different checkpoint than {source}: they do not share the volume"
    )
