"""The tools beside an engine that stumbles: each fault in each kind of request that they make.

What is judged: the tools go on, or end with a documented exit status and one line; every container
is in the last sample with new progress, or a gap says why not; nothing is left changed or paused.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from helpers.containers import IMAGE, build_image, eventually
from helpers.load import Pipe, seconds_of
from helpers.stumbling import DELAY_S, Fault, StumblingEngine
from helpers.tools import command, environment

TRAINING = """n=0; while :; do n=$((n+1)); echo step $n loss: 0.$((99999-n)); usleep 300000; done"""
BUSY = f"awk 'BEGIN {{ for (;;) x += 1 }}' & {TRAINING}"
"""A training where none waits for its turn, and one where some do."""

JOBS = 3

AT_FIRST = ("version", "info")
"""Requests without which nothing begins."""

MAY_END = {"once": (*AT_FIRST, "list"), "pipe": AT_FIRST}
"""The requests without which a tool may end, with a documented status and one line."""

ONCE = ("version", "info", "list", "inspect", "past events", "logs")
STREAM = ("version", "info", "list", "inspect", "events", "logs", "follow", "update",
          "pause", "unpause")  # fmt: skip
"""The kinds of requests that the tools make: `dl-probe` once, and the whole pipe."""

ENDS = {0, 1, 69, 75, 77}
"""With what a tool may end where it cannot go on, or where a change was refused."""

NO_INPUT, NO_READER = 65, 141

CHANGES = ("update", "pause", "unpause")
STREAMS = ("events", "follow")
"""Requests that are made once, if all goes well."""

MEETS_S, AFTER_S = 30.0, 4.0
"""How long it may take until a fault strikes, and for how long the tools go on after the last."""


def faults_of(kind: str) -> list[Fault]:
    has_frames = kind in ("logs", "follow")
    return [fault for fault in Fault if fault is not Fault.FRAME or has_frames]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tools did: what they said, which gaps stand in the rows, and what was wrong."""

    said: tuple[str, ...]
    gaps: tuple[str, ...]
    broken: tuple[str, ...]
    code: int = 0

    @property
    def words(self) -> str:
        if self.broken:
            return "; ".join(self.broken)
        if self.code:
            return f"ends with {self.code} and one line"
        told = "a gap" if self.gaps else "one line" if self.said else ""
        return f"goes on, {told}" if told else "goes on"


class Stumbles:
    """Two trainings on a real engine, and the tools that reach it through a proxy."""

    def __init__(self, url: str, *, is_busy: bool = True) -> None:
        """Start nothing yet. Limits are set only where the trainings are busy."""
        from docker import APIClient

        self._script = BUSY if is_busy else TRAINING

        self._url = url
        self._api = APIClient(url, version="auto", timeout=60)
        self._label = f"stumbles={uuid.uuid4().hex[:8]}"
        self._ids: list[str] = []

    def __enter__(self) -> Stumbles:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        build_image(self._api)
        for _ in range(JOBS):
            made = self._api.create_container(
                IMAGE,
                [self._script],
                entrypoint=["/bin/sh", "-c"],
                labels=dict([self._label.split("="), ("dltools.role", "training")]),
                host_config=self._api.create_host_config(
                    network_mode="none",
                    log_config={"type": "local"},  # other logs are read without the engine
                ),
            )
            self._ids.append(made["Id"])
            self._api.start(made["Id"])
        eventually(lambda: all(self._api.logs(id_, tail=1) for id_ in self._ids))

    def __exit__(self, *_: object) -> None:
        for id_ in self._ids:
            self._api.remove_container(id_, force=True)

    def once(self, kind: str, fault: Fault) -> Outcome:
        with self._engine() as (engine, home):
            engine.stumble(kind, [fault])
            words = command("dl-probe", "--label", self._label, "--format", "jsonl")
            done = subprocess.run(
                words, env=self._env(engine, home), capture_output=True, text=True, timeout=100
            )
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            said = tuple(done.stderr.splitlines())
            broken = [*_ended({"dl-probe": done.returncode}, said), *_met(engine, kind, fault)]
            if done.returncode == 0:
                broken += self._missing(rows)
            elif kind not in MAY_END["once"]:
                broken.append(f"ends with {done.returncode}")
            return Outcome(said, _gaps(rows), tuple(broken), done.returncode)

    def pipe(self, kind: str, faults: Sequence[Fault]) -> Outcome:
        """Run the whole pipe; requests of the kind meet one of the faults after the other. Limits
        are set where the fault is in a change alone, so that all jobs have progress elsewhere."""
        with self._engine() as (engine, home):
            planned = [one for fault in faults for one in (None, fault)]
            engine.stumble(kind, planned[1:] if kind in (*AT_FIRST, *STREAMS) else planned)
            realize = ("--realize", "rotate" if "pause" in kind else "priority")
            turns = ("--quantum", "1s") if "pause" in kind else ()
            policy = "fair" if kind in CHANGES else "noop"
            stages = {
                "dl-probe": ("-i", "0.5", "--label", self._label),
                "dl-plan": ("-p", policy, *realize, *turns),
                "dl-apply": ("--restore", "--label", self._label),
            }
            pipe = Pipe(engine.url, home, stages, asks_for_limits=kind == "update")
            try:
                struck = self._hold(pipe, engine, kind, faults)
                dead = pipe.dead
                codes = pipe.end()
            finally:
                pipe.kill()
            said = tuple(line for line in pipe.said.splitlines() if "nothing to do" not in line)
            rows = pipe.observed()
            code = codes["dl-probe"] if "dl-probe" in dead else 0
            broken = [line for fault in faults for line in _met(engine, kind, fault)]
            if code and kind in MAY_END["pipe"]:
                codes = {name: code for name, code in codes.items() if code != NO_INPUT}
                said = tuple(line for line in said if "empty input" not in line)
            elif dead:
                broken.append(f"{', '.join(dead)} ended")
            else:
                broken += self._missing(rows, struck if kind not in CHANGES else 0.0)
            broken += _ended(codes | {"dl-probe": code}, said, len(faults))
            broken += self._changed()
            return Outcome(said, _gaps(rows), tuple(broken), code)

    def _hold(
        self, pipe: Pipe, engine: StumblingEngine, kind: str, faults: Sequence[Fault]
    ) -> float:
        """Let the pipe run until a while after all faults have struck. Return when they had."""
        end = time.monotonic() + MEETS_S * len(faults)
        while time.monotonic() < end and not pipe.dead:
            if all(engine.met[kind, fault] for fault in faults):
                break
            time.sleep(0.1)
        struck = time.time()
        time.sleep(AFTER_S + (DELAY_S if Fault.DELAY in faults else 0))
        return struck

    def _engine(self) -> Any:
        return _Proxied(self._url)

    def _env(self, engine: StumblingEngine, home: Path) -> dict[str, str]:
        return environment(DOCKER_HOST=engine.url, XDG_STATE_HOME=str(home))

    def _missing(self, rows: Sequence[Mapping[str, Any]], since: float = 0.0) -> Iterator[str]:
        """Yield the containers that are not in the last sample, and those without progress since a
        time (seconds since the epoch), where no gap says why."""
        if not rows:
            yield "no rows"
            return
        last = max(_seconds(row) for row in rows)
        for number, id_ in enumerate(self._ids):
            mine = [row for row in rows if row.get("container_id") == id_]
            shown = [row for row in mine if _seconds(row) == last]
            if not any(row["kind"] == "container" for row in shown):
                yield f"container {number} is not in the last sample"
                continue
            points = [row for row in mine if row["kind"] == "progress" and _seconds(row) > since]
            if not points and not any(row.get("gap") for row in mine if _seconds(row) > since):
                yield f"container {number} has no progress, and no gap"

    def _changed(self) -> Iterator[str]:
        """Yield what is left of the tools' changes."""
        for number, id_ in enumerate(self._ids):
            found = self._api.inspect_container(id_)
            if found["State"]["Status"] != "running":
                yield f"container {number} is left {found['State']['Status']}"
                self._api.unpause(id_)
            if found["HostConfig"]["CpuShares"] not in (0, 1024):
                yield f"container {number} is left at weight {found['HostConfig']['CpuShares']}"
                self._api.update_container(id_, cpu_shares=1024)


class _Proxied:
    """A proxy and a home for the tools' state, which go together."""

    def __init__(self, url: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="dl-")
        self._engine = StumblingEngine(Path(self._home.name) / "sock", url)

    def __enter__(self) -> tuple[StumblingEngine, Path]:
        return self._engine, Path(self._home.name)

    def __exit__(self, *error: object) -> None:
        self._engine.__exit__(*error)
        self._home.cleanup()


def _ended(codes: dict[str, int], said: Sequence[str], most: int = 1) -> Iterator[str]:
    """Yield what is wrong with exit statuses and with what was said: `most` lines."""
    failed = next((code for code in reversed(codes.values()) if code in ENDS - {0}), 0)
    for name, code in codes.items():
        if code not in ENDS and not (code == NO_READER and failed):
            yield f"{name} ends with {code}"
    if any("Traceback" in line or "a bug in" in line for line in said):
        yield f"a bug: {said[-1]}"
    if len(set(said)) > most:
        yield f"{len(set(said))} lines: {' / '.join(said)}"


def _met(engine: StumblingEngine, kind: str, fault: Fault) -> Iterator[str]:
    if not engine.met[kind, fault]:
        yield f"{fault} was not met: {dict(engine.asked)}"


def _gaps(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(sorted({row.get("gap") for row in rows if row.get("gap")}))


def _seconds(row: Mapping[str, Any]) -> float:
    """Return the time of a row in seconds since the epoch."""
    at = row["time"]
    return seconds_of(datetime.fromisoformat(at) if isinstance(at, str) else at)
