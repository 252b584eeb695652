"""Hosts in memory that run one job, and fail whenever a test wants: calls are numbered."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from helpers.fake_engine import action
from helpers.located_containers import container
from helpers.tar_archives import archive

from dltools.actions.plans import Op, Result, Status
from dltools.apply.migrate.migration import Migration, MigrationFiles
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.migrate.move_steps import Mover
from dltools.engine.docker.moves import NO_RESTART, DockerMoves
from dltools.engine.interface import ALL_CAPABILITIES, Container, Engine, GoneError, RefusedError
from dltools.engine.parts import Delivers, Move, Moves
from dltools.errors import UnavailableError

JOB = "job"
CHECKPOINT = "/ckpt/model.pt"
IMAGE = "sha256:" + "1" * 64
LABELS = {"dltools.checkpoint": CHECKPOINT}


class CrashError(BaseException):
    """dl-apply is killed."""


class Fault(StrEnum):
    """What goes wrong at a call."""

    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    LOST_BEFORE = "no connection"
    LOST_AFTER = "the answer is lost"
    REFUSED = "refused"


_DOCKER = DockerMoves.__new__(DockerMoves)  # what it describes needs no engine


@dataclass
class FakeContainer:
    """What a fake host knows of a container."""

    id: str
    name: str
    state: str
    labels: dict[str, str]
    policy: dict[str, Any]
    exit_code: int = 0
    terms: int = 0


@dataclass
class World:
    """Two hosts, `a` with the job and `b` without, and the faults to come, by number of the call.

    `restarts` are the numbers of calls before which a host is switched off and on again. A job
    that is `deaf` ignores SIGTERM; on `bad_host` it ends at once with an error. `started_at` is the
    number of the last call that has started it.
    """

    folder: Path
    faults: Mapping[int, Fault] = field(default_factory=dict)
    restarts: Mapping[int, str] = field(default_factory=dict)
    policy: str = "always"
    deaf: bool = False
    bad_host: str = ""
    shared: bool = True
    calls: int = 0
    now: float = 0.0
    is_calm: bool = False
    hosts: dict[str, FakeHost] = field(default_factory=dict)
    most_running: int = 0
    started_at: int = 0
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.hosts = {name: FakeHost(self, name) for name in "ab"}
        self.hosts["a"].add(JOB, LABELS, self.policy, "running")

    @property
    def engines(self) -> dict[str, Engine]:
        return {name: cast("Engine", host) for name, host in self.hosts.items()}

    def new_id(self) -> str:
        return f"{next(self._ids):064x}"

    def running(self) -> list[str]:
        return [
            host.host
            for host in self.hosts.values()
            for one in host.containers.values()
            if one.state == "running"
        ]

    def call(self, work: Callable[[], Any]) -> Any:
        """Do what a call asks for, or fail as planned."""
        self.calls += 1
        if (host := self.restarts.get(self.calls)) and not self.is_calm:
            self.hosts[host].restart()
        fault = None if self.is_calm else self.faults.get(self.calls)
        if fault is Fault.KILLED_BEFORE:
            raise CrashError
        if fault is Fault.LOST_BEFORE:
            raise UnavailableError("no answer")
        if fault is Fault.REFUSED:
            raise RefusedError("refused on demand")
        try:
            found = work()
        finally:
            self.most_running = max(self.most_running, len(self.running()))
        if fault is Fault.KILLED_AFTER:
            raise CrashError
        if fault is Fault.LOST_AFTER:
            raise UnavailableError("the answer was lost")
        return found

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeHost(Engine, Moves, Delivers):
    """An engine with the methods that a migration needs."""

    is_local = False
    cpus = memory = 1
    has_gpu = False
    capabilities = ALL_CAPABILITIES

    def __init__(self, world: World, host: str) -> None:
        self.host = self.id = host
        self.containers: dict[str, FakeContainer] = {}
        self.images = {IMAGE: IMAGE, "image": IMAGE}
        self._world = world

    def add(self, name: str, labels: Mapping[str, str], policy: str, state: str) -> FakeContainer:
        made = FakeContainer(self._world.new_id(), name, state, dict(labels), {"Name": policy})
        self.containers[made.id] = made
        return made

    def restart(self) -> None:
        """Switch the host off and on: its engine starts what it should."""
        for one in self.containers.values():
            if one.state == "running":
                one.state, one.exit_code = "exited", 137
                if one.policy["Name"] == "always":
                    self._begin(one)

    def _begin(self, one: FakeContainer) -> None:
        bad = self._world.bad_host == self.host
        one.state, one.exit_code = ("exited", 1) if bad else ("running", 0)

    def _find(self, id_: str) -> FakeContainer:
        for one in self.containers.values():
            if id_ in (one.id, one.name):
                return one
        raise GoneError(f"No such container: {id_}")

    def inspect(self, id_: str) -> Container:
        return cast("Container", self._world.call(lambda: self._inspect(id_)))

    def _inspect(self, id_: str) -> Container:
        one = self._find(id_)
        raw = {
            "Image": IMAGE,
            "HostConfig": {"RestartPolicy": one.policy, "Binds": ["/ckpt:/ckpt"]},
            "Config": {"Labels": one.labels, "Hostname": one.id[:12], "StopTimeout": 3},
            "State": {"Status": one.state, "ExitCode": one.exit_code},
            "Mounts": [{"Type": "bind", "Source": "/ckpt", "Destination": "/ckpt", "RW": True}],
        }
        return container(raw, id=one.id, name=one.name, image="image", labels=one.labels)

    def describe_move(self, container: Container, original: Mapping[str, Any], image: str) -> Move:
        return _DOCKER.describe_move(container, original, image)

    def describe_look(self, container: Container, image: str) -> Mapping[str, Any]:
        return _DOCKER.describe_look(container, image)

    def create(self, name: str, body: Mapping[str, Any]) -> str:
        def work() -> str:
            if any(one.name == name for one in self.containers.values()):
                raise RefusedError(f"the name {name} is in use")
            policy = body["HostConfig"].get("RestartPolicy", {}).get("Name", "no")
            return self.add(name, body["Labels"], policy, "created").id

        return str(self._world.call(work))

    def start(self, id_: str) -> None:
        def work() -> None:
            one = self._find(id_)
            if one.state != "running":
                self._begin(one)
                self._world.started_at = self._world.calls

        self._world.call(work)

    def signal(self, id_: str, name: str) -> None:
        def work() -> None:
            one = self._find(id_)
            if one.state != "running":
                raise RefusedError("it does not run")
            if name == "SIGKILL" or not self._world.deaf:
                one.state, one.exit_code = "exited", 137 if name == "SIGKILL" else 0

        self._world.call(work)

    def set_restart(self, id_: str, policy: Mapping[str, Any] | None) -> None:
        def work() -> None:
            self._find(id_).policy = dict(NO_RESTART if policy is None else policy)

        self._world.call(work)

    def remove(self, id_: str) -> None:
        def work() -> None:
            one = self._find(id_)
            if one.state == "running":
                raise RefusedError("it runs")
            del self.containers[one.id]

        self._world.call(work)

    def archive(self, id_: str, path: str) -> Iterator[bytes]:
        def work() -> Iterator[bytes]:
            self._find(id_)
            if path != CHECKPOINT:
                raise GoneError(f"Could not find the file {path}")
            size = 3 if self.host == "a" or self._world.shared else 4
            return iter([archive({"model.pt": b"x" * size})])

        return cast("Iterator[bytes]", self._world.call(work))

    def image_id(self, name: str) -> str | None:
        return self.images.get(name)

    def has_volume(self, name: str) -> bool:
        return name == "shared"

    def has_network(self, name: str) -> bool:
        return name == "shared"


class CrashingFiles(MigrationFiles):
    """Records whose writing may fail like any call."""

    def __init__(self, world: World) -> None:
        super().__init__(world.folder)
        self._world = world

    def write(self, migration: Migration) -> None:
        if self._world.faults.get(self._world.calls + 1) in (
            Fault.KILLED_BEFORE,
            Fault.KILLED_AFTER,
        ):
            self._world.call(lambda: super(CrashingFiles, self).write(migration))
        else:
            super().write(migration)


def migrator(world: World, **how: bool) -> Migrator:
    files = CrashingFiles(world)
    return Migrator(Mover(world.engines, files, world.sleep, lambda: world.now), **how)


def ordered(world: World, **how: bool) -> Result:
    """Order that the job moves from `a` to `b`."""
    (old,) = world.hosts["a"].containers.values()
    order = action({}, Op.MIGRATE, host="a", container_id=old.id, container_name=old.name, to="b")
    container = world.hosts["a"]._inspect(old.id)
    found = Result(1, Status.SKIPPED, old.id, old.name)
    return migrator(world, **how).migrate(order, container, found, {})


def settle(world: World, *before_it_begins: type[BaseException]) -> None:
    """Order a move, and run dl-apply again as long as it is killed or something is left. The order
    may be refused before the move begins, by one of these errors."""
    with suppress(CrashError, *before_it_begins):
        ordered(world)
    for number in range(40):
        world.is_calm = number >= 30
        try:
            migrator(world).go_on(lambda _: None)
        except CrashError:
            continue
        if not any(one.is_open for one in CrashingFiles(world).all()):
            return
    raise AssertionError("it never ends")
