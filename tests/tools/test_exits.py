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

import pytest
from helpers import fake_engine
from helpers.fake_engine import FakeEngine
from helpers.pipes import give
from helpers.tools import TOOLS, Tools, environment

from dltools.cli.exits import COMMON, Exit

PLAN = fake_engine.plan({"cpus": 0.5})
NOWHERE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}


@dataclass
class World:
    tool: Tools
    engine: FakeEngine
    state: Path
    directory: Path

    @property
    def here(self) -> dict[str, str]:
        return {"DOCKER_HOST": self.engine.url}


Done = subprocess.CompletedProcess[bytes]
Case = Callable[[World], Done]


def an_update_that_the_engine_refuses(world: World) -> Done:
    world.engine.faults["POST /update"] = 500
    return world.tool("dl-apply", input=PLAN, env=world.here)


def a_damaged_journal(world: World) -> Done:
    (world.state / "journal").mkdir(parents=True)
    (world.state / "journal" / "x.json").write_text("junk")
    return world.tool("dl-apply", "--undo", env=world.here)


def an_engine_that_goes_away(world: World) -> Done:
    world.engine.faults["GET /containers/json"] = 0
    return world.tool("dl-probe", "-i", "0.1", "--patience", "0", env=world.here)


def something_else_that_answers(world: World) -> Done:
    world.engine.faults["GET /version"] = 418
    return world.tool("dl-probe", env=world.here)


def a_stream_into_a_missing_directory(world: World) -> Done:
    target = world.directory / "missing" / "x"
    return world.tool("dl-probe", "-i", "1", "-c", "1", "-o", target, env=world.here)


def a_state_into_a_missing_directory(world: World) -> Done:
    sample = world.tool("dl-probe", env=world.here).stdout
    return world.tool("dl-plan", "--save-state", world.directory / "missing" / "x", input=sample)


def a_place_for_state_that_is_a_file(world: World) -> Done:
    file = world.directory / "file"
    file.write_text("")
    return world.tool("dl-apply", input=PLAN, env={**world.here, "XDG_STATE_HOME": str(file)})


def a_lock_that_is_held(world: World) -> Done:
    world.state.mkdir(parents=True)
    with (world.state / "apply.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return world.tool("dl-apply", input=PLAN, env=world.here)


def a_stale_plan(world: World) -> Done:
    world.engine.faults[f"GET /{fake_engine.ID}/json"] = 404
    return world.tool("dl-apply", input=PLAN, env=world.here)


def an_engine_for_others(world: World) -> Done:
    world.engine.socket.chmod(0)
    return patched(world, "dl-probe", as_nobody("socket.connect"), **world.here)


def a_plan_for_others(world: World) -> Done:
    plan = world.directory / "plan.jsonl"
    plan.write_bytes(PLAN)
    plan.chmod(0)
    first = as_nobody("open", str(plan))
    return patched(world, "dl-apply", first, "--dry-run", "--offline", str(plan))


def a_reader_of_verdicts_that_has_gone(world: World) -> Done:
    sample = world.tool("dl-probe", env=world.here).stdout
    return into_nothing(world, "dl-plan", "--format", "table", input=sample)


CASES: dict[str, tuple[Exit, Case]] = {
    "a list of policies": (Exit.OK, lambda world: world.tool("dl-plan", "--list-policies")),
    "a sample": (Exit.OK, lambda world: world.tool("dl-probe", env=world.here)),
    "an applied plan": (Exit.OK, lambda world: world.tool("dl-apply", input=PLAN, env=world.here)),
    "an offline dry run": (
        Exit.OK,
        lambda world: world.tool("dl-apply", "--dry-run", "--offline", input=PLAN, env=NOWHERE),
    ),
    "an update that the engine refuses": (Exit.PARTIAL, an_update_that_the_engine_refuses),
    "an unknown option": (Exit.USAGE, lambda world: world.tool("dl-probe", "--nonsense")),
    "a count without an interval": (
        Exit.USAGE,
        lambda world: world.tool("dl-probe", "--count", "3", env=world.here),
    ),
    "a plan from a terminal": (Exit.USAGE, lambda world: at_a_terminal(world, "dl-apply")),
    "observations from a terminal": (Exit.USAGE, lambda world: at_a_terminal(world, "dl-plan")),
    "foreign observations": (
        Exit.DATA,
        lambda world: world.tool("dl-plan", input=b"junk that is no table"),
    ),
    "no observations": (Exit.DATA, lambda world: world.tool("dl-plan")),
    "a plan without its end": (
        Exit.DATA,
        lambda world: world.tool(
            "dl-apply", input=b"".join(PLAN.splitlines(True)[:-1]), env=world.here
        ),
    ),
    "a damaged journal": (Exit.DATA, a_damaged_journal),
    "no engine to probe": (Exit.UNAVAILABLE, lambda world: world.tool("dl-probe", env=NOWHERE)),
    "no engine to apply to": (
        Exit.UNAVAILABLE,
        lambda world: world.tool("dl-apply", input=PLAN, env=NOWHERE),
    ),
    "an engine that goes away": (Exit.UNAVAILABLE, an_engine_that_goes_away),
    "something else that answers": (Exit.UNAVAILABLE, something_else_that_answers),
    "a bug": (
        Exit.SOFTWARE,
        lambda world: patched(
            world, "dl-plan", "import dltools.plan.policy.registry as r; r.get = None"
        ),
    ),
    "a sample into a missing directory": (
        Exit.CANT_CREATE,
        lambda world: world.tool(
            "dl-probe", "-o", world.directory / "missing" / "x", env=world.here
        ),
    ),
    "a stream into a missing directory": (Exit.CANT_CREATE, a_stream_into_a_missing_directory),
    "a state into a missing directory": (Exit.CANT_CREATE, a_state_into_a_missing_directory),
    "a place for state that is a file": (Exit.CANT_CREATE, a_place_for_state_that_is_a_file),
    "observations that are an empty directory": (
        Exit.DATA,
        lambda world: world.tool("dl-plan", world.directory),
    ),
    "a plan that is not there": (
        Exit.IO,
        lambda world: world.tool("dl-apply", world.directory / "missing", env=world.here),
    ),
    "a full disk for a list": (
        Exit.IO,
        lambda world: on_a_full_disk(world, "dl-plan", "--list-policies"),
    ),
    "a full disk for a sample": (Exit.IO, lambda world: on_a_full_disk(world, "dl-probe")),
    "a full disk for a stream": (
        Exit.IO,
        lambda world: on_a_full_disk(world, "dl-probe", "-i", "0.1", "-c", "2"),
    ),
    "a full disk for results": (
        Exit.IO,
        lambda world: on_a_full_disk(world, "dl-apply", input=PLAN),
    ),
    "a lock that is held": (Exit.RETRY, a_lock_that_is_held),
    "a stale plan": (Exit.RETRY, a_stale_plan),
    "an engine for others": (Exit.PERMISSION, an_engine_for_others),
    "a plan for others": (Exit.PERMISSION, a_plan_for_others),
    "an unknown policy": (Exit.CONFIG, lambda world: world.tool("dl-plan", "--policy", "nonsense")),
    "a parameter out of range": (
        Exit.CONFIG,
        lambda world: world.tool("dl-plan", "--set", "alpha=2"),
    ),
    "a bad pattern": (
        Exit.CONFIG,
        lambda world: world.tool("dl-probe", "--pattern", "(?P<loss", env=world.here),
    ),
    "an interrupt": (Exit.INTERRUPTED, lambda world: signalled(world, signal.SIGINT)),
    "a termination": (Exit.TERMINATED, lambda world: signalled(world, signal.SIGTERM)),
    "a reader of a list that has gone": (
        Exit.PIPE,
        lambda world: into_nothing(world, "dl-plan", "--list-policies"),
    ),
    "a reader of a sample that has gone": (
        Exit.PIPE,
        lambda world: into_nothing(world, "dl-probe"),
    ),
    "a reader of text that has gone": (
        Exit.PIPE,
        lambda world: into_nothing(world, "dl-probe", "--format", "jsonl"),
    ),
    "a reader of a table that has gone": (
        Exit.PIPE,
        lambda world: into_nothing(world, "dl-probe", "--format", "table"),
    ),
    "a reader of verdicts that has gone": (Exit.PIPE, a_reader_of_verdicts_that_has_gone),
    "a reader of a table of results that has gone": (
        Exit.PIPE,
        lambda world: into_nothing(world, "dl-apply", "--format", "table", input=PLAN),
    ),
    "a reader of results that has gone": (
        Exit.PIPE,
        lambda world: into_nothing(world, "dl-apply", input=PLAN),
    ),
}

SILENT = (Exit.OK, Exit.PARTIAL, Exit.INTERRUPTED, Exit.TERMINATED, Exit.PIPE)
"""Codes that need no word on standard error: the results or the signal say it."""


@pytest.mark.parametrize(
    ("code", "produce"),
    [pytest.param(*case, id=f"{case[0].value}-{name}") for name, case in CASES.items()],
)
def test_exit(code, produce, tool, fake_engine, state, tmp_path) -> None:
    done = produce(World(tool, fake_engine, state, tmp_path))
    stderr = done.stderr.decode()
    assert done.returncode == code, stderr
    assert code in exits_of(tool_of(done)), "not among the tool's exit codes"
    assert "Traceback" not in stderr
    if code in SILENT or produce is a_stale_plan:
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


def test_debug_shows_where_a_bug_is(tool, fake_engine, state, tmp_path) -> None:
    world = World(tool, fake_engine, state, tmp_path)
    breakage = "import dltools.plan.policy.registry as r; r.get = None"
    done = patched(world, "dl-plan", breakage, DLTOOLS_DEBUG="1")
    assert b"Traceback" in done.stderr
    assert done.returncode != 0


def exits_of(name: str) -> dict[Exit, str]:
    module = import_module(f"dltools.cli.{name.removeprefix('dl-')}")
    found: dict[Exit, str] = module.EXITS
    return found


def tool_of(done: Done) -> str:
    """Return the name of the tool that was run."""
    return re.findall(r"sys\.argv\[0\] = '(dl-\w+)'", " ".join(done.args))[0]


# How to run a tool in special surroundings


def at_a_terminal(world: World, name: str) -> Done:
    master, slave = pty.openpty()
    try:
        return world.tool(name, stdin=slave)
    finally:
        os.close(master)
        os.close(slave)


def on_a_full_disk(world: World, *command: str, input: bytes = b"") -> Done:
    with Path("/dev/full").open("wb") as full:
        return world.tool(*command, input=input, stdout=full, env=world.here)


def into_nothing(world: World, *command: str, input: bytes = b"") -> Done:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return world.tool(*command, input=input, stdout=writing, env=world.here)
    finally:
        os.close(writing)


def patched(world: World, name: str, first: str, *arguments: str, **changes: str) -> Done:
    """Run a tool with a line of Python before it in the same process."""
    del world
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


def signalled(world: World, number: signal.Signals) -> Done:
    process = world.tool.begin("dl-apply", "--dry-run", "--offline")
    assert process.stdout is not None
    assert process.stderr is not None
    give(process, PLAN)
    process.stdout.readline()
    process.send_signal(number)
    code = process.wait(timeout=120)
    return subprocess.CompletedProcess(process.args, code, b"", process.stderr.read())
