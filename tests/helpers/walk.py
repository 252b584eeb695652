"""The walk of a loss value through the tools, as it is traced.

    PYTHONPATH=tests python -m helpers.walk

prints the table of ARCHITECTURE.md anew: each function of the table with the file in which it is
now, in the order in which the value reaches it, what the table says of it, and `?` for a module
that the value passes and the table lacks. A function that the value does not reach any more is
named at the end.

A job on a fake engine prints a loss that does not fall, beside one whose loss does: so it gets a
limit. Each tool runs in a process of its own, which notes every function of the package that has
the value in what it is given, or in what it returns. `dl-plan` makes a limit of the loss: from
there on the limit is the value.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from helpers.fake_engine import ID, FakeEngine
from helpers.tools import environment

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dltools"
LOSS = 0.2517
NAME, OTHER, OTHER_NAME = "flat", "e" * 64, "steep"

BELOW = ("dltools/cli/", "dltools/notation/", "dltools/files.py", "dltools/inputs.py",
         "dltools/text.py", "dltools/labels.py", "dltools/errors.py")  # fmt: skip
"""What starts the walk in each process, and what all folders share: no part of the walk."""

_MOST_LOOKS, _MOST_PARTS = 400, 600
"""How often a function is looked at that has not had the value, and at how many parts of a thing."""


@dataclass(frozen=True)
class Step:
    """A function that the value reaches: its file, and its name, `Class.method` for a method."""

    file: str
    function: str


# The engine


class TwoJobs(FakeEngine):
    """An engine with two jobs; the loss of one stays, that of the other falls."""

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self.begun = time.time() - 5
        self.host_config["CpuShares"] = 1024
        self.labels = {"dltools.role": "training"}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Answer for one of the two: the other one's id stands for this one's."""
        if path.endswith("/containers/json"):
            return 200, [{"Id": id_, "Names": [f"/{name}"], "State": "running"}
                         for id_, name in ((ID, NAME), (OTHER, OTHER_NAME))]  # fmt: skip
        is_other = f"/{OTHER}/" in path or f"/{OTHER_NAME}/" in path
        elapsed = time.time() - self.begun
        spent = {"cpu_usage": {"total_usage": int(1e9 * elapsed)}}
        self.counted = {"cpu_stats": spent, "pids_stats": {"current": 2}}
        self.log = b"".join(self._lines(elapsed, is_falling=is_other))
        mine = path.replace(f"/{NAME}/", f"/{ID}/")
        for name in (OTHER, OTHER_NAME):
            mine = mine.replace(f"/{name}/", f"/{ID}/")
        status, found = super().answer(method, mine, body)
        if isinstance(found, dict) and "Config" in found:
            found |= {"Id": OTHER, "Name": f"/{OTHER_NAME}"} if is_other else {"Name": f"/{NAME}"}
        return status, found

    def _lines(self, elapsed: float, *, is_falling: bool) -> Iterator[bytes]:
        begun = datetime.fromtimestamp(self.begun, UTC)
        for number in range(1, int(elapsed * 10)):
            loss = 10 / number if is_falling else LOSS
            stamp = (begun + timedelta(seconds=number / 10)).isoformat().replace("+00:00", "Z")
            yield f"{stamp} Epoch {number}/900\n".encode()
            yield f"{stamp} 100/100 [===] - 2s - loss: {loss:.4f}\n".encode()


# The trace, in the process of a tool


class Trace:
    """Notes the functions of the package that have one of some numbers, as they first have it."""

    def __init__(self, numbers: Iterable[float]) -> None:
        self._numbers = {float(one) for one in numbers}
        texts = {repr(one) for one in self._numbers} | {f"{one:g}" for one in self._numbers}
        self._text = re.compile("|".join(rf"(?<![\d.]){re.escape(text)}(?!\d)" for text in texts))
        self._bytes = re.compile(self._text.pattern.encode())
        self._looks: dict[Any, int] = {}
        self._package = f"{PACKAGE}{os.sep}"
        self.steps: dict[Step, None] = {}
        self.called: set[Step] = set()

    def __call__(self, frame: FrameType, event: str, given: Any) -> None:
        """Take note of a call or a return; for `sys.setprofile`."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(self._package):
            return
        looks = self._looks[code] = self._looks.get(code, 0) + 1
        if looks > _MOST_LOOKS or code.co_name.startswith("<"):
            return
        step = _step(code)
        self.called.add(step)
        if event == "call":
            count = code.co_argcount + code.co_kwonlyargcount
            given = [frame.f_locals.get(name) for name in code.co_varnames[:count]
                     if name != "self"]  # fmt: skip
        if self._has(given):
            self.steps.setdefault(step)
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
        return [*thing.keys(), *thing.values()][-200:]
    if isinstance(thing, (list, tuple, set, frozenset)) or type(thing).__name__ == "deque":
        return list(thing)[-100:]
    if not type(thing).__module__.startswith("dltools"):
        return []
    slots = [name for one in type(thing).__mro__ for name in getattr(one, "__slots__", ())]
    return [*getattr(thing, "__dict__", {}).values(),
            *(getattr(thing, name, None) for name in slots)]  # fmt: skip


@functools.cache
def _step(code: Any) -> Step:
    name = code.co_qualname.replace("<locals>.", "")
    return Step(str(Path(code.co_filename).relative_to(ROOT)), name)


def traced_tool(target: str, numbers: list[float], tool: str, arguments: list[str]) -> None:
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
        steps = [[one.file, one.function] for one in trace.steps]
        called = [[one.file, one.function] for one in trace.called]
        Path(target).write_text(json.dumps({"steps": steps, "called": called}))


# The walk


@dataclass(frozen=True)
class Walk:
    """The functions that the value reached, in order, each once in each tool; and what was called
    of the package."""

    steps: list[Step]
    called: set[Step]


@functools.cache
def walk() -> Walk:
    """Let the value walk through the three tools."""
    steps: list[Step] = []
    called: set[Step] = set()
    with tempfile.TemporaryDirectory() as folder, TwoJobs(Path(folder) / "socket") as engine:
        env = {"DOCKER_HOST": engine.url}

        def run(numbers: list[float], tool: str, *arguments: str, given: bytes = b"") -> bytes:
            target = f"{folder}/steps.json"
            code = (
                "import sys\n"
                f"sys.path.insert(0, {str(ROOT / 'tests')!r})\n"
                "from helpers.walk import traced_tool\n"
                f"traced_tool({target!r}, {numbers!r}, {tool!r}, {list(arguments)!r})\n"
            )
            done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True,
                                  env=environment(**env), timeout=300)  # fmt: skip
            assert done.returncode == 0, done.stderr.decode()
            found = json.loads(Path(target).read_text())
            steps.extend(itertools.starmap(Step, found["steps"]))
            called.update(itertools.starmap(Step, found["called"]))
            return done.stdout

        seen = run([LOSS], "dl-probe", "-i", "0.5", "-n", "6", "--format", "arrow")
        plan = ("--realize", "quota", "--set", "itval=0.5", "--state-dir", f"{folder}/state")
        del plan
        arguments = ("--realize", "quota", "--set", "itval=0.5")
        first = subprocess.run(
            [sys.executable, "-c", "from dltools.cli.plan import main; main()", *arguments],
            input=seen, capture_output=True, env=environment(**env), timeout=300, check=True,
        ).stdout  # fmt: skip
        cores = _limit_in(first)
        planned = run([LOSS, cores, cores / 4], "dl-plan", *arguments, given=seen)
        assert planned == first
        run(
            [cores, cores * 1e9, cores * 1e5],
            "dl-apply", "--state-dir", f"{folder}/state", given=planned,
        )  # fmt: skip
        assert engine.updates
    return Walk(steps, called)


def _limit_in(plan: bytes) -> float:
    """Return the CPUs that a plan gives the job whose loss stays."""
    for record in map(json.loads, plan.splitlines()):
        if record.get("container_name") == NAME and "cpus" in record.get("set", {}):
            return float(record["set"]["cpus"])
    raise AssertionError(f"no limit for {NAME} in {plan.decode()}")


def passed_modules() -> list[str]:
    """Return the modules that the value passes, without those `BELOW`."""
    files = dict.fromkeys(step.file for step in walk().steps)
    return [file for file in files if not file.startswith(BELOW)]


# The table of ARCHITECTURE.md


def documented() -> list[tuple[Step, str]]:
    """Return the rows of the table: the function, and what happens."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    part = text.partition("### A loss value")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| \d+ \| `(.*?)` \| `(.*?)` \| (.*?) \|$", part, re.M)
    return [(Step(file, function), what) for file, function, what in rows]


def anew() -> tuple[list[tuple[Step, str]], list[Step]]:
    """Return the rows of the table as they should be, and the functions that have to go."""
    words = {row.function: what for row, what in documented()}
    rows: list[tuple[Step, str]] = []
    left = dict(words)
    for step in walk().steps:
        if step.function in left and not step.file.startswith(BELOW):
            rows.append((step, left.pop(step.function)))
    known = {step.file for step, _ in rows}
    order = {step: number for number, step in reversed(list(enumerate(walk().steps)))}
    for file in passed_modules():
        if file not in known:
            rows.append((next(step for step in walk().steps if step.file == file), "?"))
    rows.sort(key=lambda row: order[row[0]])
    return rows, [row for row, _ in documented() if row.function in left]


if __name__ == "__main__":
    table, gone = anew()
    print("| # | file | function | what happens |\n|---|---|---|---|")
    for number, (row, what) in enumerate(table, 1):
        print(f"| {number} | `{row.file}` | `{row.function}` | {what} |")
    for row in gone:
        print(f"not reached: {row.function} of {row.file}", file=sys.stderr)
