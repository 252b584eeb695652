"""The live table on a real terminal: drawn in place, at any size, and nothing of it left behind."""

import os
import re
import signal
from collections.abc import Iterator

import pytest
from helpers.examples import some_of
from helpers.fake_engine import FakeEngine
from helpers.terminals import Stage, printed
from helpers.tools import command


@pytest.fixture
def live(fake_engine: FakeEngine) -> Iterator[Stage]:
    """dl-probe -i, which has drawn its first table."""
    fake_engine.log = b"2020-01-01T00:00:00.000000000Z loss: 0.5\n"
    with Stage([*command("dl-probe"), "-i", "0.3"]) as stage:
        stage.until("fake-job.*")
        yield stage


@pytest.mark.parametrize("columns", some_of([40, 120, 200], 1))
def test_another_size_is_drawn_on_an_empty_screen(live, columns) -> None:
    drawn = len(live.shown)
    live.resize(columns)
    at = live.until(r"\x1b\[2J\x1b\[H", drawn)
    end = live.until("fake-job[^\r]*", at)
    lines = re.sub(r"\r?\x1b\[\d*[mAK]", "", live.shown[at:end]).split("\r\n")
    assert lines[0].startswith("fake-host")
    assert max(map(len, lines)) <= columns
    assert ("THREADS" in "".join(lines)) == (columns >= 120)


@pytest.mark.parametrize(
    ("number", "code"),
    some_of(
        [(signal.SIGTERM, 143), (signal.SIGQUIT, -3), (signal.SIGINT, 130), (signal.SIGHUP, -1)], 2
    ),
)
@pytest.mark.slow
def test_whatever_kills_it_leaves_a_sound_terminal(live, number, code) -> None:
    """The cursor is never hidden, so that it need not be shown again, after Ctrl-Z either."""
    os.kill(live.pid, number)
    assert live.end() == code
    assert live.echoes
    assert "\x1b[?25l" not in live.shown


def test_ctrl_c_ends_it(live) -> None:
    live.type("\x03")
    assert live.end() == 130
    assert live.echoes


@pytest.mark.slow
def test_an_error_comes_below_the_table(fake_engine) -> None:
    fake_engine.faults["GET /containers/json"] = 0
    shown = printed([*command("dl-probe"), "-i", "0.2", "--patience", "0"], 69)
    last = shown.split("\r\n")[-2]
    said = f"dl-probe: no Docker engine answers at {fake_engine.url}: "
    assert last == f"{said}what answers there is not a Docker engine"


@pytest.mark.slow
@pytest.mark.usefixtures("fake_engine")
def test_lines_on_standard_error_come_above_the_table() -> None:
    shown = printed([*command("dl-probe"), "-v", "-i", "0.1", "-c", "3"])
    assert shown.count("dl-probe: sampled") == 3
    for part in shown.split("dl-probe: sampled")[2:]:
        assert part.startswith(" 1 node, 1 container\r\n")
    # Each of them takes the place of the table: its four lines are erased.
    assert shown.count("\r\x1b[2K" + "\x1b[1A\x1b[2K" * 3 + "dl-probe: ") >= 2
