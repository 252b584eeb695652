"""Where a plan goes and where its state goes: terminals, pipes, files, streams that are killed."""

import json
import os
import pty
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import eventually
from helpers.encoding import encode
from helpers.observed_rows import container, node, point
from helpers.tools import Tools, complaint, records

from dltools.actions.plan_lines import load_plans
from dltools.actions.plans import Plan
from dltools.observations.formats.arrow import FORMAT as ARROW
from dltools.observations.formats.base import Format
from dltools.observations.formats.jsonl import FORMAT as JSONL
from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.table import Row, to_table

SAMPLES = 8


def sample(number: int) -> list[Row]:
    """Two jobs: the loss of one falls, that of the other does not."""
    now = 2.0 * number
    return [
        node(now),
        *(container(now, name, now) for name in ("fast", "flat")),
        point(now, "fast", 100 - 5 * now),
        point(now, "flat", 1.0),
    ]


def recorded(format_: Format, numbers: Iterable[int] = range(SAMPLES)) -> bytes:
    return encode(format_, *(to_table(sample(number)) for number in numbers))


@pytest.fixture
def decide(tool: Tools) -> Callable[..., Any]:
    return lambda *arguments, **how: tool("dl-plan", "--set", "itval=4", *arguments, **how)


def states(output: bytes) -> list[bool]:
    return ["state" in record for record in records(output) if record["kind"] == "end"]


def decided(output: bytes) -> list[Plan]:
    """The plans, without what differs between a live stream and a recording."""
    plans = load_plans(output.splitlines(), "plans")
    return [replace(plan, state={}, input={}, is_live=False) for plan in plans]


def at_a_terminal(run: Callable[..., Any], *arguments: object, input: bytes) -> str:
    """What a tool prints on a terminal of 80 columns."""
    master, slave = pty.openpty()
    try:
        env = {"COLUMNS": "80", "TERM": "xterm", "LANG": "C.UTF-8"}
        done = run("--realize", "weight", *arguments, input=input, stdout=slave, env=env)
        assert (done.returncode, done.stderr) == (0, b"")
    finally:
        os.close(slave)
    shown = b""
    try:
        while data := os.read(master, 65536):
            shown += data
    except OSError:
        pass  # the other end is closed
    os.close(master)
    return re.sub(r"\x1b\[[\d;]*m", "", shown.decode()).replace("\r\n", "\n")


def test_a_terminal_shows_a_table(decide) -> None:
    data = recorded(PARQUET)
    shown = at_a_terminal(decide, input=data)
    assert shown.startswith("CONTAINER")
    assert '"kind"' not in shown
    assert shown == at_a_terminal(decide, "--format", "table", input=data)


def test_a_plan_that_is_wanted_on_a_terminal_comes_without_its_state(decide) -> None:
    shown = at_a_terminal(decide, "--format", "jsonl", input=recorded(PARQUET))
    assert states(shown.encode()) == [False]


def test_a_pipe_gets_the_plan_with_its_state_unless_a_file_does(decide, tmp_path) -> None:
    data = recorded(PARQUET)
    assert states(decide(input=data).stdout) == [True]
    done = decide("--save-state", tmp_path / "state", input=data)
    assert states(done.stdout) == [False]
    assert states((tmp_path / "state").read_bytes()) == [True]
    assert decide("--format", "table", input=data).stdout.startswith(b"CONTAINER")


@pytest.mark.parametrize("format_", [PARQUET, ARROW, JSONL])
@pytest.mark.parametrize("redirected", [True, False])
def test_a_plan_for_every_sample_has_the_state_once(decide, tmp_path, format_, redirected) -> None:
    file = tmp_path / "recording"
    file.write_bytes(recorded(format_))
    if redirected:
        with file.open("rb") as stdin:
            done = decide("--every", stdin=stdin)
    else:
        done = decide("--every", file)
    is_stream = format_ is ARROW
    assert states(done.stdout) == [False] * (SAMPLES - 1) + [not is_stream]
    assert "state" in records(done.stdout)[-1]


@pytest.mark.parametrize("every", [(), ("--every",)])
def test_a_live_stream_has_the_state_at_its_close_alone(decide, tmp_path, every) -> None:
    data = recorded(ARROW)
    done = decide(*every, input=data)
    assert states(done.stdout) == [False] * SAMPLES
    assert "state" in records(done.stdout)[-1]
    done = decide(*every, "--save-state", tmp_path / "s", input=data)
    assert states(done.stdout) == [False] * SAMPLES
    assert records(done.stdout)[-1] == {"kind": "close"}


def goes_on(decide: Callable[..., Any], state: Path) -> None:
    """Fail unless the last samples, after a state, end in the state of the whole."""
    rest = decide("--state", state, input=recorded(ARROW, range(5, SAMPLES)))
    whole = decide(input=recorded(ARROW))
    assert records(rest.stdout)[-1]["state"] == records(whole.stdout)[-1]["state"]


def test_a_stream_is_gone_on_with_from_its_close(decide, tmp_path) -> None:
    file = tmp_path / "plans"
    file.write_bytes(decide(input=recorded(ARROW, range(5))).stdout)
    goes_on(decide, file)
    head = decide(input=recorded(ARROW, range(5))).stdout.splitlines(keepends=True)
    file.write_bytes(b"".join([*head, *head[:-1]]))  # a stream that was killed comes after it
    assert decide("--state", file, input=recorded(ARROW)).returncode == 65


def test_plans_that_each_have_their_state_are_gone_on_with(decide, tmp_path) -> None:
    """Earlier versions wrote the state with each plan of a live stream."""
    *plans, close = records(decide(input=recorded(ARROW, range(5))).stdout)
    plans[-1]["state"] = close["state"]
    file = tmp_path / "plans"
    file.write_text("".join(json.dumps(one) + "\n" for one in plans))
    goes_on(decide, file)


def test_a_file_of_a_stream_gives_the_plans_of_the_stream(decide, tmp_path) -> None:
    file = tmp_path / "recording.arrows"
    file.write_bytes(recorded(ARROW))
    live = decide(input=file.read_bytes()).stdout
    *plans, close = records(live)
    assert close["kind"] == "close"
    assert all(record["live"] for record in plans if record["kind"] == "plan")
    assert decided(decide(file).stdout) == decided(live)


def test_each_hundredth_plan_of_a_live_stream_says_all(decide) -> None:
    done = decide(input=recorded(ARROW, range(203)))
    plans = [one for one in records(done.stdout) if one["kind"] == "plan"]
    whole = [number for number, plan in enumerate(plans) if "params" in plan]
    assert {0, 100, 200} <= set(whole)
    assert len(whole) < 20


@pytest.mark.parametrize("lost", [0, 8, 9, 500])
def test_only_a_live_stream_that_is_closed_is_closed(decide, lost) -> None:
    data = recorded(ARROW)
    found = records(decide(input=data[: len(data) - lost]).stdout)
    assert ("close" in {record["kind"] for record in found}) == (lost == 0)
    assert found[0]["live"]


HOUR = 1800
"""Samples of an hour."""


@pytest.mark.parametrize("is_file", [True, False])
def test_when_the_clock_is_set_back_all_begins_anew(decide, tmp_path, is_file) -> None:
    ahead, back = [HOUR + number for number in range(4)], list(range(4))
    data = recorded(ARROW, [*ahead, *back])
    file = tmp_path / "recording.arrows"
    file.write_bytes(data)
    done = decide(file) if is_file else decide(input=data)
    assert complaint(done.stderr).endswith("the clock was set back: dl-plan forgets what it knew")
    alone = decided(decide(input=recorded(ARROW, back)).stdout)
    assert decided(done.stdout)[-len(alone) :] == alone


def test_a_small_step_back_is_made_up_for(decide) -> None:
    done = decide(input=recorded(ARROW, [20, 21, 5, 6, 22]))
    assert done.stderr == b""
    at = [one["at"] for one in records(done.stdout) if one["kind"] == "plan"]
    assert at[1:4] == [at[1]] * 3
    assert at[4] > at[1]


def test_a_stream_that_is_cut_has_a_plan_for_each_whole_sample(decide, tmp_path) -> None:
    file = tmp_path / "recording.arrows"
    file.write_bytes(recorded(ARROW)[:-200])
    done = decide(file)
    assert done.returncode == 65
    assert states(done.stdout) == [False] * (SAMPLES - 1)


@pytest.mark.slow
def test_a_killed_stream_is_gone_on_with(tool, decide, tmp_path) -> None:
    state = tmp_path / "state"
    process = tool.begin("dl-plan", "--set", "itval=4", "--save-state", state)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(recorded(ARROW, range(5))[:-8])  # without the mark of the end
    process.stdin.flush()
    plans = b""
    while plans.count(b'"kind":"end"') < 5:
        plans += process.stdout.readline()
    # The file is written after the plan: wait for the fifth.
    plan = next(one for one in reversed(records(plans)) if one["kind"] == "plan")
    eventually(lambda: state.exists() and plan["at"] == records(state.read_bytes())[0]["at"])
    process.kill()
    process.wait()
    goes_on(decide, state)


def test_plans_without_state_are_nothing_to_go_on_from(decide, tmp_path) -> None:
    data = recorded(PARQUET)
    file = tmp_path / "plan.jsonl"
    file.write_bytes(decide("--save-state", tmp_path / "state", input=data).stdout)
    done = decide("--state", file, input=data)
    assert done.returncode == 65
    assert complaint(done.stderr) == (
        f"dl-plan: {file}: its last plan has no state: write one with --save-state"
    )


def test_classes_are_in_every_plan(decide) -> None:
    done = decide("--every", input=recorded(PARQUET))
    classes = [plan.classes["node"] for plan in decided(done.stdout)]
    assert len(classes) == SAMPLES
    assert all(set(found) == {"fast", "flat"} for found in classes)
    assert classes[-1]["flat"] != classes[-1]["fast"]


@pytest.mark.parametrize(("mode", "warns"), [("weight", True), ("auto", False), ("rotate", False)])
def test_a_quantum_without_turns_is_told(decide, mode, warns) -> None:
    done = decide("--realize", mode, "--quantum", "5", input=recorded(PARQUET))
    assert done.returncode == 0
    assert bool(done.stderr) == warns
    if warns:
        assert complaint(done.stderr) == (
            f"dl-plan: --quantum has no effect with --realize {mode}: only rotate gives turns"
        )


@pytest.mark.parametrize("stream", [ARROW, JSONL], ids=["stream", "recording"])
def test_a_mode_that_no_engine_can_do_is_refused_once(decide, stream) -> None:
    cannot = {"cannot": "cpus+cpu_weight+cpuset+move"}
    samples = [sample(number) for number in range(SAMPLES)]
    for row in (row for rows in samples for row in rows if row["kind"] == "container"):
        row |= cannot
    data = encode(stream, *map(to_table, samples))
    done = decide("--realize", "quota", "--format", "table", input=data)
    assert done.returncode == 0
    assert complaint(done.stderr) == (
        "dl-plan: nothing to do: --realize quota is not possible: the engine sets no quota on any "
        "job here; --realize rotate is possible"
    )
