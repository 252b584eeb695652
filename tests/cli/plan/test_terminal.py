"""dl-plan on a terminal: live tables are drawn in place, and who types it is told what to pipe."""

import shlex

import pytest
from helpers.terminals import Stage, printed
from helpers.tools import command

USAGE = 2
PROBE, PLAN = shlex.join(command("dl-probe")), shlex.join(command("dl-plan"))


def pipe(*plan: str) -> list[str]:
    return ["bash", "-c", f"{PROBE} -i 0.2 -c 4 | {PLAN} {shlex.join(plan)}"]


@pytest.mark.slow
@pytest.mark.usefixtures("fake_engine")
def test_a_live_table_takes_the_place_of_the_one_before() -> None:
    with Stage(pipe()) as stage:
        assert stage.end() == 0
        assert stage.echoes
    assert stage.shown.count("CONTAINER") >= 4
    assert stage.shown.count("\r\x1b[2K") >= 3
    assert "\x1b[?25l" not in stage.shown
    assert stage.shown.count("nothing to do: 1 container runs") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("fake_engine")
def test_lines_of_json_are_not_drawn_in_place() -> None:
    assert "\x1b[2K" not in printed(pipe("--format", "jsonl"))


def test_one_that_is_typed_alone_says_what_to_pipe_in() -> None:
    assert printed(command("dl-plan"), USAGE) == (
        "dl-plan: standard input is a terminal: type dl-probe | dl-plan, or give a FILE; see "
        "dl-plan --help\r\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("fake_engine")
def test_the_last_tool_speaks(tmp_path) -> None:
    """A plan that goes to a file has no reader that would say why it is empty."""
    (only,) = printed(["bash", "-c", f"{PROBE} | {PLAN} >{tmp_path}/plan"]).splitlines()
    assert only.startswith("dl-plan: nothing to do: 1 container runs, it is not known to train")
