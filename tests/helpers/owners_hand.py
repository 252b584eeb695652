"""An owners' hand: owners give random commands beside the pipe, and each ends as without it.

An arm is one run of the owners' commands: on Docker alone first, then beside each policy and
realisation. What became of each command on Docker alone is what is expected of the others.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.containers import build_image
from helpers.load import Pipe
from helpers.owner_commands import Command, Owner
from helpers.owner_verdicts import slowest, verdicts
from helpers.tools import environment

from dltools.engine.cgroup import mounts
from dltools.engine.interface import Container

OWNERS = 4
SETTLE_S = 15.0
"""How long a job may take to end that is told to, and what a command does to show."""

HANGS_S = 40.0
"""After how long a command hangs: a stop takes ten seconds at most."""

TIMES = 2
"""How often an arm is tried where only the time is wrong, which other work may have taken."""

NOT_RUNNING = ("exited", "dead", "gone")
SAVED = 3
"""The exit status of a job that has saved."""

PAUSING = ("rotate", "auto")
"""The realisations that may pause: there a job that runs for its owner may be seen paused."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A container as the engine shows it; `settings` by their effect."""

    id: str = ""
    state: str = "gone"
    code: int | None = None
    started: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def agrees(self, expected: Seen, *, may_wait: bool) -> bool:
        """Tell whether it is in that state: a job that was killed there may have saved here."""
        state = "running" if may_wait and self.state == "paused" else self.state
        has_saved = (self.code, expected.code) == (SAVED, 137)
        return expected.state in (self.state, state) and (self.code == expected.code or has_saved)

    def __str__(self) -> str:
        return self.state if self.code is None else f"{self.state} ({self.code})"


@dataclass(frozen=True, slots=True)
class Done:
    """A command that was given: its exit status, how long it took, what it said, the container
    before and after, and when it began and ended (seconds since the epoch)."""

    command: Command
    code: int
    said: str
    before: Seen
    after: Seen
    began: float
    ended: float
    is_second: bool = False
    """Whether Docker refused it at first since the tools had paused the container."""

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Arm:
    """One run of the owners' commands. `realisation` is empty on Docker alone."""

    def __init__(self, url: str, seed: int, count: int, stages: Stages | None = None) -> None:
        from docker import APIClient

        self.url = url
        self.api = APIClient(url, version="auto", timeout=HANGS_S)
        self.stages = stages
        self.done: dict[int, list[Done]] = {}
        self.last: dict[int, Seen] = {}
        self.marks: dict[int, Counter[str]] = {}
        self.events: list[dict[str, Any]] = []
        self.ended: dict[str, int] = {}
        self.said = ""
        self._seed, self._count = seed, count
        self._label = f"owners-hand={uuid.uuid4().hex[:8]}"
        self._ids: dict[int, str] = {}
        self.failed: list[BaseException] = []
        self.refused = 0

    @property
    def may_pause(self) -> bool:
        return self.stages is not None and self.stages.realisation in PAUSING

    def hand(self, alone: Arm) -> Hand:
        given = [one for commands in self.done.values() for one in commands]
        usual = slowest(alone)
        late_s = max(0.0, *(one.seconds - usual[one.command.kind] for one in given))
        resumed = sum(one.is_second for one in given)
        return Hand(len(given), resumed, late_s, self.refused, alone.refused)

    def run(self, expected: Arm | None, kinds: Sequence[str] = ()) -> None:
        with tempfile.TemporaryDirectory(prefix="dl-hand-") as home:
            owners = [self._owner(number, Path(home), kinds) for number in range(OWNERS)]
            begun = int(time.time())
            try:
                for number, owner in enumerate(owners):
                    self._start(number, owner)
                with self._pipe(Path(home)):
                    self._give_all(owners, expected)
                self._look_last(owners, expected)
            finally:
                self.events = [*self._events(begun)]
                self._remove()

    def _owner(self, number: int, home: Path, kinds: Sequence[str]) -> Owner:
        out = home / f"out{number}"
        out.mkdir()
        chance = random.Random(f"{self._seed} {number}")
        name = f"hand-{self._label[-8:]}-{number}"
        return Owner(chance, name, self._label, str(out), kinds)

    def _start(self, number: int, owner: Owner) -> None:
        done = self._docker(owner.start)
        assert done.returncode == 0, done.stderr
        self._ids[number] = done.stdout.strip()

    @contextlib.contextmanager
    def _pipe(self, home: Path) -> Iterator[None]:
        """Run the tools beside what is done, and end them as Ctrl-C does."""
        if self.stages is None:
            yield
            return
        pipe = Pipe(self.url, home, self.stages.words(self._label))
        try:
            yield
            self.ended = pipe.end()
            self.said = pipe.said
        finally:
            pipe.kill()

    def _give_all(self, owners: Sequence[Owner], expected: Arm | None) -> None:
        """Let all owners give their commands at the same time."""
        time.sleep(4)  # the tools begin
        threads = []
        for number, owner in enumerate(owners):
            self.done[number] = []
            work = self._guarded(self._give, number, [*owner.commands(self._count)], expected)
            threads.append(threading.Thread(target=work))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> Callable[[], None]:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                self.failed.append(error)

        return run

    def _give(self, number: int, commands: Sequence[Command], expected: Arm | None) -> None:
        for index, command in enumerate(commands):
            time.sleep(command.after_s)
            awaited = expected.done[number][index] if expected else None
            self.done[number].append(self._do(number, command, awaited))

    def _do(self, number: int, command: Command, awaited: Done | None) -> Done:
        before = self._look(number)
        began = time.time()
        code, said = self._try(command.steps)
        is_second = self.may_pause and code != 0 and "paused" in said and "not paused" not in said
        if is_second and awaited is not None and awaited.code != code:
            # Docker refuses it, and tells nobody that it was asked: an owner resumes the job.
            self._docker(("unpause", self._ids[number]))
            began = time.time()
            code, said = self._try(command.steps)
        else:
            is_second = False
        ended = time.time()
        if command.kind == "again":
            self._ids[number] = said.split()[-1]
        after = self._settled(number, command, before, awaited)
        return Done(command, code, said, before, after, began, ended, is_second)

    def _try(self, steps: Sequence[Sequence[str]]) -> tuple[int, str]:
        """Give docker's commands; return the first exit status that is not 0, and what was said.
        A pause that runc refuses, as it may by chance where CPUs are busy, is given again."""
        said = ""
        for words in steps:
            done = self._docker(words)
            while "unable to freeze" in done.stderr:
                self.refused += 1
                done = self._docker(words)
            said += done.stdout + done.stderr
            if done.returncode:
                return done.returncode, said
        return 0, said

    def _docker(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Give one of docker's commands. One that hangs since its container was frozen while
        something began in it ends once the kernel has thawed it, and is told as such."""
        process = subprocess.Popen(
            ["docker", *words],
            env=environment(DOCKER_HOST=self.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            said, error = process.communicate(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            self._thaw()
            time.sleep(1)
            process.kill()
            said, error = process.communicate()
            error += f" (hung for {HANGS_S:.0f} s)"
        return subprocess.CompletedProcess(words, process.returncode, said, error)

    def _thaw(self) -> None:
        """Let go on what the engine itself cannot."""
        for folder, _, names in os.walk("/sys/fs/cgroup"):  # others come and go meanwhile
            if any(id_ in folder for id_ in self._ids.values()):
                for name, thawed in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                    if name in names:
                        with contextlib.suppress(OSError):
                            Path(folder, name).write_text(thawed)

    # What is seen

    def _settled(self, number: int, command: Command, before: Seen, awaited: Done | None) -> Seen:
        """Look at a container once what a command does has shown."""
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            seen = self._look(number)
            if awaited is not None:
                is_there = seen.agrees(awaited.after, may_wait=self.may_pause)
            else:
                is_there = not command.ends_the_job or before.state in NOT_RUNNING
                is_there = is_there or seen.state in NOT_RUNNING
            if is_there:
                break
            time.sleep(0.1)
        return seen

    def _look(self, number: int) -> Seen:
        from docker.errors import NotFound
        from requests.exceptions import ReadTimeout

        try:
            found = self.api.inspect_container(self._ids[number])
        except NotFound:
            return Seen()
        except ReadTimeout:
            self._thaw()
            return Seen(self._ids[number], "hangs")
        state, config = found["State"], found["HostConfig"]
        name = state["Status"]
        code = state["ExitCode"] if name in NOT_RUNNING else None
        settings = self._effects(config) | _in_force(state["Pid"], found["Id"])
        return Seen(found["Id"], name, code, state["StartedAt"], settings)

    def _effects(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings by their effect: several values mean that there is no limit."""
        cpus = self.api.info()["NCPU"]
        quota = config["NanoCpus"] / 1e9 or max(0, config["CpuQuota"]) / (
            config["CpuPeriod"] or 100_000
        )
        every = ("", f"0-{cpus - 1}")
        return {
            "weight": config["CpuShares"] or 1024,
            "cpus": quota if 0 < quota < cpus else None,
            "cpuset": "" if config["CpusetCpus"] in every else config["CpusetCpus"],
            "memory": config["Memory"],
            "restart": config["RestartPolicy"],
        }

    def _look_last(self, owners: Sequence[Owner], expected: Arm | None) -> None:
        """Look at all containers after the end of the tools."""
        for number, owner in enumerate(owners):
            end = time.monotonic() + SETTLE_S
            while time.monotonic() < end:
                seen, marks = self._look(number), self._marks(Path(owner.out))
                if expected is None or (
                    seen.agrees(expected.last[number], may_wait=False)
                    and marks >= expected.marks[number]
                ):
                    break
                time.sleep(0.2)
            self.last[number], self.marks[number] = seen, marks

    def _marks(self, out: Path) -> Counter[str]:
        """Return how often a job has saved, and was told something."""
        return Counter(
            {
                name: len((out / name).read_text().splitlines())
                for name in ("saved", "told")
                if (out / name).exists()
            }
        )

    def _events(self, begun: int) -> Iterator[dict[str, Any]]:
        told = {"type": ["container"], "label": [self._label]}
        until = int(time.time()) + 1
        yield from self.api.events(since=begun, until=until, decode=True, filters=told)

    def _remove(self) -> None:
        self._thaw()
        from docker.errors import APIError

        for _ in range(3):
            for found in self.api.containers(all=True, filters={"label": self._label}):
                with contextlib.suppress(APIError):  # the engine cannot just now
                    self.api.remove_container(found["Id"], force=True)


@dataclass(frozen=True, slots=True)
class Stages:
    """A policy and a realisation."""

    policy: str
    realisation: str

    def words(self, label: str) -> dict[str, tuple[str, ...]]:
        often = () if self.policy in ("noop", "fair") else ("--set", "itval=2")
        turns = ("--quantum", "2s") if self.realisation == "rotate" else ()
        realize = ("--realize", self.realisation)
        return {
            "dl-probe": ("-i", "1", "--label", label),
            "dl-plan": ("--policy", self.policy, *realize, *often, *turns),
            "dl-apply": ("--restore", "--label", label),
        }

    def __str__(self) -> str:
        return f"-p {self.policy} --realize {self.realisation}"


def _in_force(pid: int, id_: str) -> dict[str, Any]:
    """Return the limits of a container that the kernel keeps, {} where it does not run."""
    group = Container(id_, "", pid=pid).local_cgroup(mounts())
    directory = group.directory("cpu") if group else None
    if directory is None or directory.weight() is None:
        return {}
    return {"weight in force": directory.weight(), "cpus in force": directory.quota()}


@dataclass
class Hand:
    """What was tried, and what went wrong. `resumed`: how many commands Docker refused at first
    since a job waited, paused, for its turn. `late_s`: what a command took longer than the slowest
    of its kind on Docker alone, at most. `refused`: pauses that runc refused, here and there."""

    commands: int = 0
    resumed: int = 0
    late_s: float = 0.0
    refused: int = 0
    refused_alone: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def figures(self) -> str:
        return (
            f"{self.resumed} given twice since the job was paused; "
            f"{self.refused} pauses refused by runc, {self.refused_alone} on Docker alone; "
            f"{self.late_s:.1f} s later than on Docker alone at most"
        )

    def add(self, other: Hand) -> None:
        self.commands += other.commands
        self.resumed += other.resumed
        self.late_s = max(self.late_s, other.late_s)
        self.refused += other.refused
        self.refused_alone += other.refused_alone
        self.broken += other.broken


def try_hand(
    url: str, seed: int, arms: Sequence[Stages], count: int, kinds: Sequence[str] = ()
) -> Hand:
    """Give the commands of a seed on Docker alone, then beside each of these arms: `count` of each
    owner, of these kinds or of all."""
    alone = Arm(url, seed, count)
    build_image(alone.api)
    alone.run(None, kinds)
    hand = Hand()
    for stages in arms:
        for attempt in range(TIMES):
            arm = Arm(url, seed, count, stages)
            arm.run(alone, kinds)
            found = [*verdicts(arm, alone)]
            hand.add(arm.hand(alone))
            if attempt == TIMES - 1 or not found or not all(one.is_of_time for one in found):
                hand.broken += [f"seed {seed}, {stages}: {one.text}" for one in found]
                break
    return hand
