"""dl-plan on a terminal: tables of a live stream are drawn in place, and a typed dl-plan is told
what to pipe in."""

import shlex

import pytest
from helpers.fake_engine import FakeEngine
from helpers.terminals import Stage
from helpers.tools import command

USAGE = 2


def pipe(*plan: str, engine: FakeEngine) -> Stage:
    probe = shlex.join([*command("dl-probe"), "-i", "0.2", "-c", "4"])
    line = f"{probe} | {shlex.join([*command('dl-plan'), *plan])}"
    return Stage(["bash", "-c", line], DOCKER_HOST=engine.url)


@pytest.mark.slow
def test_a_live_table_takes_the_place_of_the_one_before(fake_engine) -> None:
    stage = pipe(engine=fake_engine)
    try:
        assert stage.end() == 0
        assert stage.echoes
    finally:
        stage.close()
    assert stage.shown.count("CONTAINER") >= 4
    assert stage.shown.count("\r\x1b[2K") >= 3
    assert "\x1b[?25l" not in stage.shown
    assert stage.shown.count("nothing to do: 1 container runs") == 1


@pytest.mark.slow
def test_lines_of_json_are_not_drawn_in_place(fake_engine) -> None:
    stage = pipe("--format", "jsonl", engine=fake_engine)
    try:
        assert stage.end() == 0
    finally:
        stage.close()
    assert "\x1b[2K" not in stage.shown


def test_one_that_is_typed_alone_says_what_to_pipe_in() -> None:
    stage = Stage(command("dl-plan"))
    try:
        assert stage.end() == USAGE
    finally:
        stage.close()
    assert stage.shown == (
        "dl-plan: standard input is a terminal: type dl-probe | dl-plan, or give a FILE; see "
        "dl-plan --help\r\n"
    )


@pytest.mark.slow
def test_the_last_tool_speaks(fake_engine, tmp_path) -> None:
    """A plan that goes to a file has no reader that would say why it is empty."""
    line = f"{shlex.join(command('dl-probe'))} | {shlex.join(command('dl-plan'))}"
    stage = Stage(["bash", "-c", f"{line} >{tmp_path}/plan"], DOCKER_HOST=fake_engine.url)
    try:
        assert stage.end() == 0
    finally:
        stage.close()
    (only,) = stage.shown.splitlines()
    assert only.startswith("dl-plan: nothing to do: 1 container runs, it is not known to train")
