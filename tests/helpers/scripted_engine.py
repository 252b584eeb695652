"""An engine inside the test's process: the test starts, stops and removes its containers."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dltools.engine.containers import Container, GoneError
from dltools.errors import UnavailableError

BEGUN = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass
class ScriptedFlow:
    """A log that goes on until its container stops."""

    came: bytes = b""
    ended: bool = False

    def take(self) -> bytes:
        taken, self.came = self.came, b""
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

    def start(self, name: str, labels: Mapping[str, str] | None = None, at: int = 0) -> str:
        """Start a container, or start it again, `at` seconds after the beginning."""
        id_ = name.encode().hex().ljust(64, "0")
        self.known[id_] = Container(
            id_, name, "image", "running", 0, BEGUN + timedelta(seconds=at), True, labels or {},
            {}, {},
        )  # fmt: skip
        self.logged.setdefault(id_, [])
        return id_

    def rename(self, id_: str, name: str) -> None:
        self.known[id_] = replace(self.known[id_], name=name)

    def log(self, id_: str, second: int, text: str) -> None:
        """Log a line so many seconds after the beginning."""
        stamp = (BEGUN + timedelta(seconds=second)).isoformat()
        line = f"{stamp} {text}\n".encode()
        self.logged[id_].append(line)
        if (flow := self.flows.get(id_)) and not flow.ended:
            flow.came += line

    def stop(self, id_: str) -> None:
        del self.known[id_]
        if flow := self.flows.get(id_):
            flow.ended = True

    def end(self, id_: str, second: int, code: int) -> None:
        """Let a container end so many seconds after the beginning; it is not removed."""
        at = (BEGUN + timedelta(seconds=second)).isoformat()
        raw = {"State": {"FinishedAt": at, "ExitCode": code}}
        self.known[id_] = replace(self.known[id_], state="exited", raw=raw)
        if flow := self.flows.get(id_):
            flow.ended = True

    # What the probe asks

    def stats(self, id_: str) -> Mapping[str, Any]:
        """The counters of a container of which the API tells none, unless a test gives some."""
        return self.counted.get(id_, {})

    def containers(self, filters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        del filters
        self._answer()
        self.lists += 1
        return [
            {"Id": one.id, "Names": [f"/{one.name}"], "State": one.state}
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
        flow = self.flows[container.id] = ScriptedFlow(b"".join(repeated))
        return flow

    def events(self, since: float) -> Iterator[dict[str, Any]]:
        del since
        while (item := self.raw_events.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    def past_events(self, since: float, until: float) -> list[dict[str, Any]]:
        del since, until
        return self.past

    def _answer(self) -> None:
        if self.is_away:
            raise UnavailableError("no Docker engine answers")


def event(action: str, id_: str, name: str, **attributes: str) -> dict[str, Any]:
    """Return an event in the engine's words."""
    return {
        "Action": action,
        "Actor": {"ID": id_, "Attributes": {"name": name, **attributes}},
        "timeNano": int(BEGUN.timestamp()) * 10**9,
    }
