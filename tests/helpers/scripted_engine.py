"""An engine inside the test's process: the test starts, stops and removes its containers."""

import queue
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from helpers.located_containers import container

from dltools.engine.cgroup_files import Usage
from dltools.engine.docker.answers import event_of, usage_of
from dltools.engine.docker.changes import Changes, DockerLimits
from dltools.engine.interface import (
    ALL_CAPABILITIES,
    Capabilities,
    Container,
    Ending,
    Event,
    GoneError,
    Listed,
)
from dltools.errors import UnavailableError

BEGUN = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass
class ScriptedFlow:
    """A log that goes on until its container stops."""

    came: list[bytes] = field(default_factory=list)
    ended: bool = False
    is_behind: bool = False
    fault: str = ""

    def take(self) -> list[bytes]:
        taken, self.came = self.came, []
        return taken

    def wait(self, seconds: float) -> None:
        del seconds

    def close(self) -> None:
        self.ended = True


@dataclass
class ScriptedEngine:
    """What tests need of `Engine`. Containers are on no machine: their process number is 0."""

    host: str = "host"
    id: str = "engine"
    is_local: bool = True
    cpus: int = 4
    memory: int = 1 << 33
    lists: int = 0
    is_away: bool = False
    raw_events: queue.SimpleQueue[dict[str, Any] | Exception | None] = field(
        default_factory=queue.SimpleQueue
    )
    past: list[dict[str, Any]] = field(default_factory=list)
    known: dict[str, Container] = field(default_factory=dict)
    logged: dict[str, list[bytes]] = field(default_factory=dict)
    flows: dict[str, ScriptedFlow] = field(default_factory=dict)
    counted: dict[str, dict[str, Any]] = field(default_factory=dict)
    capabilities: Capabilities = ALL_CAPABILITIES
    parts: Sequence[object] = (DockerLimits(cast("Changes", None), 4, 0),)

    def start(self, name: str, labels: Mapping[str, str] | None = None, at: int = 0) -> str:
        """Start a container, or start it again, `at` seconds after the beginning."""
        id_ = name.encode().hex().ljust(64, "0")
        self.known[id_] = container(
            id=id_,
            name=name,
            image="image",
            started=BEGUN + timedelta(seconds=at),
            labels=labels or {},
        )
        self.logged.setdefault(id_, [])
        return id_

    def rename(self, id_: str, name: str) -> None:
        self.known[id_] = replace(self.known[id_], name=name)

    def log(self, id_: str, second: int, text: str) -> None:
        stamp = (BEGUN + timedelta(seconds=second)).isoformat()
        line = f"{stamp} {text}\n".encode()
        self.logged[id_].append(line)
        if (flow := self.flows.get(id_)) and not flow.ended:
            flow.came.append(line)

    def stop(self, id_: str) -> None:
        del self.known[id_]
        if flow := self.flows.get(id_):
            flow.ended = True

    def end(self, id_: str, second: int, code: int) -> None:
        at = BEGUN + timedelta(seconds=second)
        self.known[id_] = replace(self.known[id_], state="exited", ended=Ending(at, code))
        if flow := self.flows.get(id_):
            flow.ended = True

    # What the probe asks

    def usage(self, id_: str) -> Usage | None:
        """The counters of a container of which the API tells none, unless a test gives some."""
        return usage_of(self.counted[id_]) if id_ in self.counted else None

    def containers(self, labels: Sequence[str] = (), names: Sequence[str] = ()) -> list[Listed]:
        del labels, names
        self._answer()
        self.lists += 1
        return [
            Listed(one.id, one.name, one.state)
            for one in self.known.values()
            if one.state != "exited"
        ]

    def inspect(self, id_: str) -> Container:
        self._answer()
        if id_ not in self.known:
            raise GoneError("No such container")
        return self.known[id_]

    def logs(self, container: Container, since: float) -> Iterator[list[bytes]]:
        del since
        self._answer()
        if container.id not in self.logged:
            raise GoneError("No such container")
        yield from ([entry] for entry in list(self.logged[container.id]))

    def follow(
        self, container: Container, since: float, *, is_new_only: bool = False
    ) -> ScriptedFlow:
        """Return a log as it goes on; like the engine, it repeats lines from `since` on."""
        self._answer()
        if container.id not in self.logged:
            raise GoneError("No such container")
        repeated = [
            line
            for line in self.logged[container.id]
            if not is_new_only
            and datetime.fromisoformat(line.split()[0].decode()).timestamp() >= since
        ]
        flow = self.flows[container.id] = ScriptedFlow(repeated)
        return flow

    def events(self, since: float) -> Iterator[Event]:
        del since
        while (item := self.raw_events.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield event_of(item)

    def past_events(self, since: float, until: float) -> list[Event]:
        del since, until
        return list(map(event_of, self.past))

    def _answer(self) -> None:
        if self.is_away:
            raise UnavailableError("no Docker engine answers")


def event(action: str, id_: str, name: str, **attributes: str) -> dict[str, Any]:
    return {
        "Action": action,
        "Actor": {"ID": id_, "Attributes": {"name": name, **attributes}},
        "timeNano": int(BEGUN.timestamp()) * 10**9,
    }
