"""The walk of a loss value through the tools, as it is traced, and as ARCHITECTURE.md tells it.

    PYTHONPATH=tests python -m helpers.walk

writes the table of ARCHITECTURE.md anew: its functions, each with the file in which it is now, in
the order in which the value reaches them, and what the table says of them; then the sentence that
names the other modules that the value passes. Functions that the value does not reach any more are
named on stderr. To move a module from the sentence into the table, write a row with one of its
functions, of any number, and run this again.

Two jobs on a fake engine print losses, and each gets a limit by its growth. Each tool runs in a
process of its own, which notes every function of the package that is given the value, or returns
it. `dl-plan` makes a limit of the loss: from there on the limit is the value.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from helpers.fake_engine import ID, FakeEngine
from helpers.tools import command, environment

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dltools"
LOSS = 0.2517
BESIDE = "On its way the value also passes"
"""How the sentence begins that names the modules which are not in the table."""

NAME, OTHER, OTHER_NAME = "job", "e" * 64, "other"

BELOW = (
    "dltools/cli/",
    "dltools/notation/",
    "dltools/files.py",
    "dltools/inputs.py",
    "dltools/text.py",
    "dltools/labels.py",
    "dltools/errors.py",
)
"""What starts the walk in each process, and what all folders share: no part of the walk."""

_MOST_LOOKS, _MOST_PARTS = 400, 3_000
"""How often a function is looked at that has not returned the value, and how many parts of what it
is given or returns are."""


@dataclass(frozen=True)
class Step:
    """A function that the value reaches: its file, and its name, `Class.method` for a method."""

    file: str
    function: str


# The engine


class TwoJobs(FakeEngine):
    """An engine with two jobs; the loss of one falls slowly, that of the other fast."""

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self._begun = 0.0  # five seconds before the first request: that is not too long ago
        self._other = FakeEngine(socket)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Answer for one of the jobs: the other has an engine of its own behind this one."""
        self._begun = self._begun or time.time() - 5
        if path.endswith("/containers/json"):
            return 200, [
                {"Id": id_, "Names": [f"/{name}"], "State": "running"}
                for id_, name in ((ID, NAME), (OTHER, OTHER_NAME))
            ]
        if f"/{OTHER}/" not in path:
            self._prepare(self, lambda number: LOSS + 0.0003 * (30 - number))
            status, found = super().answer(method, path, body)
            return status, _named(found, ID, NAME)
        self._prepare(self._other, lambda number: 10 / number)
        status, found = self._other.answer(method, path.replace(OTHER, ID), body)
        return status, _named(found, OTHER, OTHER_NAME)

    def _prepare(self, job: FakeEngine, loss: Callable[[int], float]) -> None:
        """Let a job have used a CPU, and have printed a loss ten times a second, until now."""
        elapsed = time.time() - self._begun
        job.labels, job.started = {"dltools.role": "training"}, _stamp(self._begun)
        job.counted = {"cpu_stats": {"cpu_usage": {"total_usage": int(1e9 * elapsed)}}}
        job.log = b"".join(
            f"{_stamp(self._begun + number / 10)} {line}\n".encode()
            for number in range(1, int(elapsed * 10))
            for line in (f"Epoch {number}/900", f"100/100 [===] - 2s - loss: {loss(number):.4f}")
        )


def _named(found: Any, id_: str, name: str) -> Any:
    """Return an inspection with another id and name, any other answer as it is."""
    is_inspection = isinstance(found, dict) and "Config" in found
    return found | {"Id": id_, "Name": f"/{name}"} if is_inspection else found


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


# The trace, in the process of a tool


class Trace:
    """Notes the functions of the package that have one of some numbers: `reached` has those that
    were given it or returned it, `passed` those that returned it, `called` all that were called;
    each by when that was first."""

    def __init__(self, numbers: Iterable[float]) -> None:
        self._numbers = {float(one) for one in numbers}
        texts = {repr(one) for one in self._numbers} | {f"{one:g}" for one in self._numbers}
        self._text = re.compile("|".join(rf"(?<![\d.]){re.escape(text)}(?!\d)" for text in texts))
        self._bytes = re.compile(self._text.pattern.encode())
        self._looks: dict[CodeType, int] = {}
        self._package = f"{PACKAGE}{os.sep}"
        self._now = itertools.count()
        self.called: dict[Step, int] = {}
        self.reached: dict[Step, int] = {}
        self.passed: dict[Step, int] = {}

    def __call__(self, frame: FrameType, event: str, given: Any) -> None:
        """Take note of a call or a return; for `sys.setprofile`."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(self._package):
            return
        looks = self._looks[code] = self._looks.get(code, 0) + 1
        if looks > _MOST_LOOKS or code.co_name.startswith("<"):
            return
        step = _step(code)
        now = next(self._now)
        self.called.setdefault(step, now)
        if event == "call":
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            given = [frame.f_locals.get(name) for name in names if name != "self"]
        if not self._has(given):
            return
        self.reached.setdefault(step, now)
        if event == "return":
            self.passed.setdefault(step, now)
            self._looks[code] = _MOST_LOOKS

    def _has(self, thing: Any) -> bool:
        """Tell whether a thing, or a part of it, is one of the numbers or says it."""
        seen: set[int] = set()
        waiting = [thing]
        for _ in range(_MOST_PARTS):
            if not waiting:
                return False
            one = waiting.pop()
            if isinstance(one, bool) or one is None or isinstance(one, type):
                continue
            if isinstance(one, (int, float)):
                if any(abs(one - number) <= 1e-9 * number for number in self._numbers):
                    return True
            elif isinstance(one, str):
                if self._text.search(one):
                    return True
            elif isinstance(one, (bytes, bytearray)):
                if self._bytes.search(one):
                    return True
            elif id(one) not in seen:
                seen.add(id(one))
                waiting += _parts(one)
        return False


def _parts(thing: Any) -> list[Any]:
    """Return the parts of a thing in which a number may stand."""
    if hasattr(thing, "to_pylist") and hasattr(thing, "schema"):
        names = thing.schema.names
        return thing.column("value").to_pylist() if "value" in names else []
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()][:1000]
    if isinstance(thing, (list, tuple, set, frozenset)) or type(thing).__name__ == "deque":
        return list(thing)[:1000]
    if not dataclasses.is_dataclass(thing):
        return []  # an object that does things has its own functions: these are looked at
    return [getattr(thing, one.name, None) for one in dataclasses.fields(thing)]


@functools.cache
def _step(code: CodeType) -> Step:
    name = code.co_qualname.replace("<locals>.", "")
    return Step(str(Path(code.co_filename).relative_to(ROOT)), name)


def trace_tool(target: str, numbers: list[float], tool: str, arguments: list[str]) -> None:
    """Run a tool in this process, and write its steps to a file when it ends."""
    sys.argv = [tool, *arguments]
    module = __import__(f"dltools.cli.{tool.removeprefix('dl-')}", fromlist=["main"])
    trace = Trace(numbers)
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        module.main()
    finally:
        sys.setprofile(None)
        notes = {
            name: [[step.file, step.function, at] for step, at in getattr(trace, name).items()]
            for name in ("called", "reached", "passed")
        }
        Path(target).write_text(json.dumps(notes))


# The walk


@dataclass(frozen=True)
class Walk:
    """What a `Trace` notes, of the three tools in order."""

    called: dict[Step, int] = field(default_factory=dict)
    reached: dict[Step, int] = field(default_factory=dict)
    passed: dict[Step, int] = field(default_factory=dict)

    @property
    def modules(self) -> list[str]:
        """The modules that the value passes, in order, without those `BELOW`."""
        files = dict.fromkeys(step.file for step in self.passed)
        return [file for file in files if not file.startswith(BELOW)]

    def place(self, function: str) -> tuple[int, Step] | None:
        """Return when the value reaches a function, or else when it is called, and its step; None
        if it is not called."""
        for steps in (self.reached, self.called):
            for step, at in steps.items():
                if step.function == function and not step.file.startswith(BELOW):
                    return at, step
        return None


@functools.cache
def walk() -> Walk:
    """Let the value walk through the three tools."""
    found = Walk()
    begun = itertools.count(0, 1_000_000)
    with tempfile.TemporaryDirectory() as folder, TwoJobs(Path(folder) / "socket") as engine:
        env = environment(DOCKER_HOST=engine.url)

        def run(numbers: list[float], tool: str, *arguments: str, given: bytes = b"") -> bytes:
            target = Path(folder) / "notes.json"
            code = (
                f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n"
                "from helpers.walk import trace_tool\n"
                f"trace_tool({str(target)!r}, {numbers!r}, {tool!r}, {list(arguments)!r})\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", code], input=given, capture_output=True, env=env, timeout=300
            )
            assert done.returncode == 0, f"{tool}: {done.stderr!r} {done.stdout[:2000]!r}"
            before = next(begun)
            for name, steps in json.loads(target.read_text()).items():
                for file, function, at in steps:
                    getattr(found, name).setdefault(Step(file, function), before + at)
            return done.stdout

        seen = run([LOSS], "dl-probe", "-i", "2", "-c", "1", "--format", "arrow")
        by_growth = ("--realize", "quota", "--set", "itval=2", "--set", "alpha=0.001")
        planning = command("dl-plan", *by_growth)
        first = subprocess.run(planning, input=seen, capture_output=True, env=env, check=True)
        cores = _limit_in(first.stdout)
        plan = run([LOSS, cores], "dl-plan", *by_growth, given=seen)
        assert plan == first.stdout
        fields = [cores, cores * 1e9, cores * 1e5]
        run(fields, "dl-apply", "--state-dir", f"{folder}/state", given=plan)
        assert engine.updates
    return found


def _limit_in(plan: bytes) -> float:
    """Return the CPUs that a plan gives the job whose loss stays."""
    for record in map(json.loads, plan.splitlines()):
        if record["kind"] == "action" and record["container"]["name"] == NAME:
            return float(record["set"]["cpus"])
    raise AssertionError(f"no limit for {NAME}")


# ARCHITECTURE.md


@dataclass(frozen=True)
class Told:
    """The walk as it is told: the rows of the table, a step and what happens, and the modules that
    the sentence below it names."""

    rows: list[tuple[Step, str]]
    beside: list[str]


def told() -> Told:
    """Return what ARCHITECTURE.md tells."""
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("### A loss value")[2]
    part = text.partition("\n### ")[0]
    rows = re.findall(r"^\| \d+ \| `(.*?)` \| `(.*?)` \| (.*?) \|$", part, re.M)
    sentence = part.partition(BESIDE)[2].partition(".\n")[0]
    return Told(
        [(Step(file, function), what) for file, function, what in rows],
        re.findall(r"`(\S+)`", sentence),
    )


def anew() -> Told:
    """Return what ARCHITECTURE.md should tell."""
    traced = walk()
    rows = [(place, what) for row, what in told().rows if (place := traced.place(row.function))]
    rows.sort(key=lambda row: row[0][0])
    steps = [(step, what) for (_, step), what in rows]
    in_table = {step.file for step, _ in steps}
    return Told(steps, [file for file in traced.modules if file not in in_table])


def written(found: Told) -> str:
    """Return the table and the sentence as ARCHITECTURE.md has them."""
    lines = ["| # | file | function | what happens |", "|---|---|---|---|"]
    lines += [
        f"| {number} | `{row.file}` | `{row.function}` | {what} |"
        for number, (row, what) in enumerate(found.rows, 1)
    ]
    names = ", ".join(f"`{file}`" for file in found.beside)
    sentence = textwrap.wrap(f"{BESIDE} {names}.", 104, break_on_hyphens=False)
    return "\n".join([*lines, "", *sentence, ""])


def main() -> None:
    """Write the table and the sentence anew."""
    file = ROOT / "ARCHITECTURE.md"
    head, title, rest = file.read_text().partition("### A loss value")
    part, following, tail = rest.partition("\n### ")
    before = part.partition("| # |")[0]
    found = anew()
    lost = [row for row, _ in told().rows if walk().place(row.function) is None]
    file.write_text("".join([head, title, before, written(found), following, tail]))
    for row in lost:
        print(f"not called, and left out: {row.function} of {row.file}", file=sys.stderr)


if __name__ == "__main__":
    main()
