"""Every exit code, produced by running a tool; none of these needs a Docker engine."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from helpers import fake_engine
from helpers.fake_engine import FakeEngine
from helpers.pipes import give
from helpers.tools import TOOLS, Tools, environment

from dltools.cli.exits import COMMON, Exit

PLAN = fake_engine.plan({"cpus": 0.5})
NOWHERE = "unix:///nonexistent/docker.sock"

Done = subprocess.CompletedProcess[bytes]


@dataclass
class World:
    tool: Tools
    engine: FakeEngine
    state: Path
    directory: Path
    monkeypatch: pytest.MonkeyPatch

    def run(self, line: str, input: bytes = b"", **streams: Any) -> Done:
        """Run a tool; {} in its line is the directory."""
        name, *arguments = line.format(self.directory).split()
        return self.tool(name, *arguments, input=input, **streams)


Case = Callable[[World], Done]


def run(line: str, input: bytes = b"") -> Case:
    """A case of a tool beside an engine that answers."""
    return lambda world: world.run(line, input)


def without_engine(line: str, input: bytes = b"") -> Case:
    def case(world: World) -> Done:
        world.monkeypatch.setenv("DOCKER_HOST", NOWHERE)
        return world.run(line, input)

    return case


def with_fault(request: str, status: int, line: str, input: bytes = b"") -> Case:
    """A case of a tool whose engine answers a request with a status, 0 for hanging up."""

    def case(world: World) -> Done:
        world.engine.faults[request] = status
        return world.run(line, input)

    return case


def on_a_full_disk(line: str, input: bytes = b"") -> Case:
    def case(world: World) -> Done:
        with Path("/dev/full").open("wb") as full:
            return world.run(line, input, stdout=full)

    return case


def into_nothing(line: str, input: bytes = b"") -> Case:
    """A case of a tool whose reader has gone."""

    def case(world: World) -> Done:
        reading, writing = os.pipe()
        os.close(reading)
        try:
            return world.run(line, input, stdout=writing)
        finally:
            os.close(writing)

    return case


def at_a_terminal(name: str) -> Case:
    def case(world: World) -> Done:
        master, slave = pty.openpty()
        try:
            return world.run(name, stdin=slave)
        finally:
            os.close(master)
            os.close(slave)

    return case


def signalled(number: signal.Signals) -> Case:
    def case(world: World) -> Done:
        process = world.tool.begin("dl-apply", "--dry-run", "--offline")
        assert process.stdout is not None
        assert process.stderr is not None
        give(process, PLAN)
        process.stdout.readline()
        process.send_signal(number)
        code = process.wait(timeout=120)
        return subprocess.CompletedProcess(process.args, code, b"", process.stderr.read())

    return case


def with_a_damaged_journal(command: str) -> Case:
    def case(world: World) -> Done:
        (world.state / "journal").mkdir(parents=True)
        (world.state / "journal" / "x.json").write_text("junk")
        return world.run(command)

    return case


def a_state_into_a_missing_directory(world: World) -> Done:
    sample = world.run("dl-probe").stdout
    return world.run("dl-plan --save-state {}/missing/x", sample)


def a_place_for_state_that_is_a_file(world: World) -> Done:
    file = world.directory / "file"
    file.write_text("")
    world.monkeypatch.setenv("XDG_STATE_HOME", str(file))
    return world.run("dl-apply", PLAN)


def a_lock_that_is_held(world: World) -> Done:
    world.state.mkdir(parents=True)
    with (world.state / "apply.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return world.run("dl-apply", PLAN)


def an_engine_for_others(world: World) -> Done:
    world.engine.socket.chmod(0)
    return patched("dl-probe", as_nobody("socket.connect"))


def a_plan_for_others(world: World) -> Done:
    plan = world.directory / "plan.jsonl"
    plan.write_bytes(PLAN)
    plan.chmod(0)
    return patched("dl-apply", as_nobody("open", str(plan)), "--dry-run", "--offline", str(plan))


def a_reader_of_verdicts_that_has_gone(world: World) -> Done:
    sample = world.run("dl-probe").stdout
    return into_nothing("dl-plan --format table", sample)(world)


BREAKAGE = "import dltools.plan.policy.registry as r; r.get = None"
STALE = with_fault(f"GET /{fake_engine.ID}/json", 404, "dl-apply", PLAN)

CASES: dict[str, tuple[Exit, Case]] = {
    "a list of policies": (Exit.OK, run("dl-plan --list-policies")),
    "a sample": (Exit.OK, run("dl-probe")),
    "an applied plan": (Exit.OK, run("dl-apply", PLAN)),
    "an offline dry run": (Exit.OK, without_engine("dl-apply --dry-run --offline", PLAN)),
    "a refused update": (Exit.PARTIAL, with_fault("POST /update", 500, "dl-apply", PLAN)),
    "an unknown option": (Exit.USAGE, run("dl-probe --nonsense")),
    "a count without an interval": (Exit.USAGE, run("dl-probe --count 3")),
    "a plan from a terminal": (Exit.USAGE, at_a_terminal("dl-apply")),
    "observations from a terminal": (Exit.USAGE, at_a_terminal("dl-plan")),
    "foreign observations": (Exit.DATA, run("dl-plan", b"junk that is no table")),
    "no observations": (Exit.DATA, run("dl-plan")),
    "a plan without its end": (Exit.DATA, run("dl-apply", b"".join(PLAN.splitlines(True)[:-1]))),
    "a damaged journal": (Exit.DATA, with_a_damaged_journal("dl-apply --undo")),
    "the status of a damaged journal": (Exit.DATA, with_a_damaged_journal("dl-apply --status")),
    "no engine to probe": (Exit.UNAVAILABLE, without_engine("dl-probe")),
    "no engine to apply to": (Exit.UNAVAILABLE, without_engine("dl-apply", PLAN)),
    "an engine that goes away": (
        Exit.UNAVAILABLE,
        with_fault("GET /containers/json", 0, "dl-probe -i 0.1 --patience 0"),
    ),
    "something else that answers": (Exit.UNAVAILABLE, with_fault("GET /version", 418, "dl-probe")),
    "a bug": (Exit.SOFTWARE, lambda _: patched("dl-plan", BREAKAGE)),
    "a sample into a missing directory": (Exit.CANT_CREATE, run("dl-probe -o {}/missing/x")),
    "a stream into no directory": (Exit.CANT_CREATE, run("dl-probe -i 1 -c 1 -o {}/missing/x")),
    "a state into a missing directory": (Exit.CANT_CREATE, a_state_into_a_missing_directory),
    "a place for state that is a file": (Exit.CANT_CREATE, a_place_for_state_that_is_a_file),
    "observations that are an empty directory": (Exit.DATA, run("dl-plan {}")),
    "a plan that is not there": (Exit.IO, run("dl-apply {}/missing")),
    "a full disk for a list": (Exit.IO, on_a_full_disk("dl-plan --list-policies")),
    "a full disk for a sample": (Exit.IO, on_a_full_disk("dl-probe")),
    "a full disk for a stream": (Exit.IO, on_a_full_disk("dl-probe -i 0.1 -c 2")),
    "a full disk for results": (Exit.IO, on_a_full_disk("dl-apply", PLAN)),
    "a lock that is held": (Exit.RETRY, a_lock_that_is_held),
    "a stale plan": (Exit.RETRY, STALE),
    "an engine for others": (Exit.PERMISSION, an_engine_for_others),
    "a plan for others": (Exit.PERMISSION, a_plan_for_others),
    "an unknown policy": (Exit.CONFIG, run("dl-plan --policy nonsense")),
    "a parameter out of range": (Exit.CONFIG, run("dl-plan --set alpha=2")),
    "a bad pattern": (Exit.CONFIG, run("dl-probe --pattern (?P<loss")),
    "an interrupt": (Exit.INTERRUPTED, signalled(signal.SIGINT)),
    "a termination": (Exit.TERMINATED, signalled(signal.SIGTERM)),
    "a reader of a list that has gone": (Exit.PIPE, into_nothing("dl-plan --list-policies")),
    "a reader of a sample that has gone": (Exit.PIPE, into_nothing("dl-probe")),
    "a reader of text that has gone": (Exit.PIPE, into_nothing("dl-probe --format jsonl")),
    "a reader of a table that has gone": (Exit.PIPE, into_nothing("dl-probe --format table")),
    "a reader of verdicts that has gone": (Exit.PIPE, a_reader_of_verdicts_that_has_gone),
    "a reader of results that has gone": (Exit.PIPE, into_nothing("dl-apply", PLAN)),
    "a reader of their table": (Exit.PIPE, into_nothing("dl-apply --format table", PLAN)),
}

SILENT = (Exit.OK, Exit.PARTIAL, Exit.INTERRUPTED, Exit.TERMINATED, Exit.PIPE)
"""Codes that need no word on standard error: the results or the signal say it."""


@pytest.mark.parametrize(
    ("code", "produce"),
    [pytest.param(*case, id=f"{case[0].value}-{name}") for name, case in CASES.items()],
)
def test_exit(code, produce, tool, fake_engine, state, tmp_path, monkeypatch) -> None:
    done = produce(World(tool, fake_engine, state, tmp_path, monkeypatch))
    stderr = done.stderr.decode()
    assert done.returncode == code, stderr
    assert code in exits_of(tool_of(done)), "not among the tool's exit codes"
    assert "Traceback" not in stderr
    if code in SILENT or produce is STALE:
        assert stderr == ""
    elif code is not Exit.USAGE:
        assert len(stderr.splitlines()) == 1
        assert stderr.startswith("dl-")


def test_every_code_is_produced() -> None:
    assert {code for code, _ in CASES.values()} == set(Exit)


@pytest.mark.parametrize("name", TOOLS)
def test_the_codes_of_a_tool_are_in_order_and_have_meanings(name) -> None:
    exits = exits_of(name)
    assert list(exits) == sorted(exits)
    assert COMMON.keys() <= exits.keys()
    assert all(re.fullmatch(r"[A-Z].*\.", meaning) for meaning in exits.values())


def test_every_code_is_of_some_tool() -> None:
    assert {code for name in TOOLS for code in exits_of(name)} == set(Exit)


@pytest.mark.parametrize("option", ["--help", "--version"])
@pytest.mark.parametrize("name", TOOLS)
def test_help_on_a_full_disk(tool, name, option) -> None:
    with Path("/dev/full").open("wb") as full:
        done = tool(name, option, stdout=full)
    assert done.returncode == Exit.IO
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "closed"), [(["--list-policies"], "1>&-"), ([], "0<&-")], ids=["output", "input"]
)
def test_a_closed_stream_is_no_bug(tool, tmp_path, arguments, closed) -> None:
    done = tool.shell(f"dl-plan {' '.join(arguments)} {closed}", tmp_path / "bin")
    assert done.returncode not in (Exit.OK, Exit.SOFTWARE)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[""], ["--state-dir", ""], ["--label="]])
def test_an_empty_argument_is_no_name(tool, arguments) -> None:
    done = tool("dl-apply", "--dry-run", "--offline", *arguments, input=PLAN)
    assert (done.returncode, done.stdout) == (Exit.USAGE, b"")
    assert b"an argument is empty: is a variable unset?" in done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_a_message_that_nobody_gets_changes_nothing(tool, tmp_path, closed) -> None:
    (tmp_path / "plan").write_bytes(PLAN.replace(b'"actions":1', b'"actions":2'))
    line = f"dl-apply --dry-run --offline {tmp_path}/plan {closed}"
    done = tool.shell(line, tmp_path / "bin")
    assert (done.returncode, len(done.stdout.splitlines())) == (Exit.OK, 1)
    done = tool.shell(f"dl-plan {tmp_path}/missing {closed}", tmp_path / "bin")
    assert (done.returncode, done.stdout) == (Exit.IO, b"")


def test_debug_shows_where_a_bug_is() -> None:
    done = patched("dl-plan", BREAKAGE, DLTOOLS_DEBUG="1")
    assert b"Traceback" in done.stderr
    assert done.returncode != 0


def exits_of(name: str) -> dict[Exit, str]:
    module = import_module(f"dltools.cli.{name.removeprefix('dl-')}")
    found: dict[Exit, str] = module.EXITS
    return found


def tool_of(done: Done) -> str:
    """Return the name of the tool that was run."""
    return re.findall(r"sys\.argv\[0\] = '(dl-\w+)'", " ".join(done.args))[0]


def patched(name: str, first: str, *arguments: str, **changes: str) -> Done:
    """Run a tool with a line of Python before it in the same process."""
    module = f"dltools.cli.{name.removeprefix('dl-')}"
    code = f"import sys; sys.argv[0] = '{name}'; from {module} import main; {first}; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=b"",
        capture_output=True,
        env=environment(**changes),
        timeout=300,
    )


def as_nobody(event: str, name: str = "") -> str:
    """Return Python that gives root's rights up just before something is opened or connected to.

    No earlier, since nobody may not be allowed to read Python's own files; what dl-probe imports in
    a thread meanwhile is imported first.
    """
    matches = f"event == {event!r} and (not {name!r} or str(args[0]) == {name!r})"
    return (
        "import os, pyarrow.parquet; sys.addaudithook(lambda event, args:"
        f" {matches} and os.geteuid() == 0 and os.seteuid(65534))"
    )
