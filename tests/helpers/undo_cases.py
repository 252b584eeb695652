"""Random cases for the promise of --undo: dl-apply is killed, containers live on, and all is as it
was.

A case is a sequence of runs of dl-apply, each killed at a random system call, with restarts,
renames, removals and restarts of the engine between them; then --undo, which is killed too.
"""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from helpers.containers import STARTS, Job
from helpers.daemon import Daemon
from helpers.forks import become
from helpers.killing import Ended, run_until
from helpers.tools import environment

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Action, Op, Plan
from dltools.actions.settings import Settings
from dltools.notation.times import format_time

JOBS = 3
CALLS = 12
"""Changing calls that a run of dl-apply makes at least."""


@dataclass
class Tally:
    cases: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    broken: list[str] = field(default_factory=list)


@dataclass
class Known:
    """A container, and how it was before dl-apply first touched it."""

    job: Job
    before: Mapping[str, Any]


class UndoCases:
    """Cases on an engine of their own. `tally` counts them."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self.tally = Tally()
        self._daemon = daemon
        self._chance = random.Random(seed)
        self._containers = daemon.containers()
        self._engine = self._containers.engine
        self._home = tempfile.TemporaryDirectory(prefix="dl-undo-")
        self._state = Path(self._home.name) / "state"
        self._known: list[Known] = []
        self._names = 0
        self._story: list[str] = []
        self._lengths, self._undo_lengths = deque([40], 20), deque([CALLS], 20)

    def __enter__(self) -> UndoCases:
        return self

    def __exit__(self, *_: object) -> None:
        self._containers.remove()
        self._home.cleanup()

    def run(self) -> None:
        self._renew()
        self._story.clear()
        for _ in range(self._chance.randint(1, 4)):
            self._apply()
            for _ in range(self._chance.choice((0, 0, 1, 2))):
                self._interfere()
        while self._chance.random() < 0.4:
            self._dl_apply(b"", "--undo")
        last = self._finish()
        self.tally.cases += 1
        self._compare(last)

    # Containers

    def _renew(self) -> None:
        """See that enough containers run, the oldest one replaced now and then."""
        if self._known and self._chance.random() < 0.1:
            self._known.pop(0).job.remove()
        while len(self._known) < JOBS:
            self._start(f"job{self._names}")
        for one in self._known:
            if one.job.inspect().state == "exited":
                one.job.start()
        for one in self._known:
            one.before = self._look(one.job)

    def _start(self, name: str) -> None:
        self._names += 1
        start = self._chance.choice([*STARTS.values()])
        job = self._containers("while :; do sleep 1; done", name=name, **start)
        if self._chance.random() < 0.2:
            self._daemon.api.pause(job.id)
        self._known.append(Known(job, self._look(job)))

    def _look(self, job: Job) -> Mapping[str, Any]:
        """Return what the kernel and the engine say of a container, while it runs."""
        found = job.inspect()
        seen = {"record": job.effects, "state": found.state}
        return seen | ({"kernel": job.kernel()} if found.pid else {})

    # dl-apply

    def _apply(self) -> None:
        plans = [self._plan() for _ in range(self._chance.randint(1, 3))]
        arguments = ["--restore"] if self._chance.random() < 0.15 else []
        self._dl_apply(b"".join(plans), "--hold", "0.4", *arguments)

    def _plan(self) -> bytes:
        chosen = self._chance.sample(self._known, self._chance.randint(1, len(self._known)))
        if self._chance.random() < 0.2:
            wanted = [
                (Op.ROTATE, one.job, {"group": number, "turn_s": 0.15})
                for number, one in enumerate(chosen)
            ]
        else:
            wanted = [self._change(one.job) for one in chosen]
        actions = tuple(
            Action(number, op, self._engine.host, job.id, job.name, settings, {}, "test")
            for number, (op, job, settings) in enumerate(wanted, 1)
        )
        return dump_plan(
            Plan("test", format_time(datetime.now(UTC)), {}, {}, None, actions)
        ).encode()

    def _change(self, job: Job) -> tuple[Op, Job, Settings]:
        op = self._chance.choice((Op.UPDATE,) * 4 + (Op.PAUSE, Op.UNPAUSE))
        if op is not Op.UPDATE:
            return op, job, {}
        choices: Settings = {
            "cpus": self._chance.choice((None, 0.01, round(self._chance.uniform(0.1, 2.0), 2))),
            "weight": self._chance.choice((2, 262_144, self._chance.randint(2, 5000))),
            "cpuset": self._chance.choice((None, "0", "1", "0-1")),
        }
        names = self._chance.sample(sorted(choices), self._chance.randint(1, 3))
        return op, job, {name: choices[name] for name in names}

    def _dl_apply(self, plans: bytes, *arguments: str) -> None:
        """Run dl-apply, and kill it somewhere or nowhere."""
        lengths = self._undo_lengths if "--undo" in arguments else self._lengths
        most = self._chance.choice(lengths)
        number = self._chance.randrange(most) if self._chance.random() < 0.95 else None
        ended = self._traced(plans, arguments, number)
        self._tell(plans, arguments, ended)
        if ended.code is None:
            self.tally.kills[ended.calls[-1]] += 1
        else:
            self.tally.ended += 1
            lengths.append(len(ended.calls))
            if ended.code not in (0, 1, 75):
                self._break(f"dl-apply {arguments} ended with {ended.code}")

    def _traced(self, plans: bytes, arguments: tuple[str, ...], number: int | None) -> Ended:
        """Run dl-apply in a fork that has its own streams, and kill it at a call."""
        source, said, error = (Path(self._home.name) / name for name in ("plans", "said", "error"))
        source.write_bytes(plans)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        words = {
            "name": "dl-apply",
            "arguments": ["--state-dir", str(self._state), *arguments],
            "env": environment(DOCKER_HOST=self._daemon.url),
            "cwd": "/",
        }
        handles = [os.open(source, os.O_RDONLY), os.open(said, flags), os.open(error, flags)]
        try:
            after = self._chance.random() < 0.5
            return run_until(lambda: become(words, handles), number, after=after)
        finally:
            for handle in handles:
                os.close(handle)

    def _tell(self, plans: bytes, arguments: tuple[str, ...], ended: Ended) -> None:
        """Note a run for the story of its case."""
        how = f"killed at {ended.calls[-1]}" if ended.code is None else f"ended with {ended.code}"
        self._note(f"dl-apply {' '.join(arguments)} {how}: {plans.decode()}{self._said()}")

    def _note(self, what: str) -> None:
        self._story.append(f"{time.time():.3f} {what}")

    def _said(self) -> str:
        return (Path(self._home.name) / "said").read_text()

    # What happens meanwhile

    def _interfere(self) -> None:
        happenings = (self._restart, self._rename, self._stop, self._recreate)
        if self._chance.random() < 0.04:
            self._restart_engine()
            self._note("the engine restarted")
        else:
            (happening,) = self._chance.choices(happenings, (4, 2, 1, 1))
            one = self._chance.choice(self._known)
            self._note(f"{happening.__name__} {one.job.name}")
            happening(one)

    def _restart(self, one: Known) -> None:
        one.job.restart()
        self._has_begun_anew(one, "running")
        self.tally.events["restarted"] += 1

    def _stop(self, one: Known) -> None:
        one.job.stop()
        self._has_begun_anew(one, "exited")
        self.tally.events["stopped"] += 1

    def _has_begun_anew(self, one: Known, state: str) -> None:
        """Expect the state that the administrator chose, in place of the one before."""
        one.before = {**one.before, "state": state}

    def _rename(self, one: Known) -> None:
        self._names += 1
        self._daemon.api.rename(one.job.id, f"{one.job.name}-{self._names}")
        self.tally.events["renamed"] += 1

    def _recreate(self, one: Known) -> None:
        name = one.job.name.rpartition("-")[2]
        one.job.remove()
        self._known.remove(one)
        self._start(name)
        self.tally.events["removed and made again"] += 1

    def _restart_engine(self) -> None:
        self._daemon.stop(self._chance.choice((signal.SIGTERM, signal.SIGKILL)))
        self._daemon.start()
        self.tally.events["engine restarted"] += 1

    # The promise

    def _finish(self) -> str:
        ended = self._traced(b"", ("--undo",), None)
        while ended.code == 75 and self._is_locked():  # by the watchdog of a killed run
            ended = self._traced(b"", ("--undo",), None)
        said = self._said()
        if ended.code != 0:
            self._break(f"--undo ended with {ended.code}: {said}")
        for folder in ("journal", "rotation"):
            for path in sorted((self._state / folder).glob("*")):
                self._break(f"--undo left {folder}/{path.name}: {path.read_text()}")
                path.unlink()
        return said

    def _break(self, what: str) -> None:
        """Count a broken promise, and tell how it came about."""
        self.tally.broken.append("\n".join([what, *self._story]))

    def _is_locked(self) -> bool:
        """Tell whether a lock was in the way; wait a moment."""
        time.sleep(0.1)
        return "another dl-apply" in (Path(self._home.name) / "error").read_text()

    def _compare(self, said: str) -> None:
        for one in self._known:
            found = self._look(one.job)
            expected = {key: one.before[key] for key in found if key in one.before}
            if found != expected:
                self._break(
                    f"{one.job.name}: {json.dumps(found)} was {json.dumps(expected)}; {said}"
                )
            elif found["state"] == "running" and self._chance.random() < 0.1:
                one.job.restart()  # by the engine's record
                if one.job.kernel() != one.before["kernel"]:
                    self._break(f"{one.job.name}: after a restart {one.job.kernel()}")
