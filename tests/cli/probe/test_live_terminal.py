"""The live table on a real terminal: keys, sizes, stops, ends; and the terminal given back."""

import os
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.examples import some_of
from helpers.fake_engine import FakeEngine
from helpers.terminals import Stage
from helpers.tools import command

ENTRY = r"\x1b\[\?25h"  # the cursor is shown again
LONG = ("-i", "600")  # so that nothing is drawn but by what the test does


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    started: list[Stage] = []
    yield started
    for stage in started:
        stage.close()


@pytest.fixture
def live(fake_engine: FakeEngine, stages: list[Stage]) -> Stage:
    """dl-probe -i, which has drawn its first table."""
    fake_engine.log = b"2020-01-01T00:00:00.000000000Z loss: 0.5\n"
    stages.append(Stage([*command("dl-probe"), *LONG], DOCKER_HOST=fake_engine.url))
    stages[-1].until("fake-job.*")
    return stages[-1]


def test_keys_are_not_echoed_and_q_quits(live) -> None:
    assert not live.echoes
    drawn = len(live.shown)
    live.type("abc xyz\r\n\t\x1b[A\x1bq")
    live.type("hello")
    live.until_it(lambda: live._read(0.3) is False)
    assert live.shown[drawn:] == ""
    live.type("q")
    assert live.end() == 0
    assert live.echoes
    assert "abc" not in live.shown
    assert "hello" not in live.shown
    assert live.shown.endswith("\r\n\x1b[?25h")


@pytest.mark.slow
def test_what_was_typed_is_not_left_for_the_shell(live) -> None:
    live.type("Q")
    live.type("rm -r x\n")
    assert live.end() == 0


@pytest.mark.parametrize("columns", some_of([40, 120, 200], 1))
def test_another_size_is_drawn_at_once_on_an_empty_screen(live, columns) -> None:
    drawn = len(live.shown)
    live.resize(columns)
    at = live.until(r"\x1b\[2J\x1b\[H", drawn)
    end = live.until("fake-job[^\r]*", at)
    lines = re.sub(r"\r?\x1b\[\d*[mAK]", "", live.shown[at:end]).split("\r\n")
    assert lines[0].startswith("fake-host")
    assert len(lines) == 4
    assert max(map(len, lines)) <= columns
    assert ("THREADS" in lines[1]) == (columns >= 120)


@pytest.mark.parametrize(
    ("number", "code"),
    some_of(
        [(signal.SIGTERM, 143), (signal.SIGQUIT, -3), (signal.SIGINT, 130), (signal.SIGHUP, -1)], 2
    ),
)
@pytest.mark.slow
def test_whatever_kills_it_leaves_a_sound_terminal(live, number, code) -> None:
    os.kill(live.pid, number)
    assert live.end() == code
    assert live.echoes
    assert live.shown.endswith("\r\n\x1b[?25h")


def test_ctrl_c_ends_it(live) -> None:
    live.type("\x03")
    assert live.end() == 130
    assert live.echoes


@pytest.mark.slow
def test_an_error_comes_below_the_table_on_a_sound_terminal(fake_engine, stages) -> None:
    fake_engine.faults["GET /containers/json"] = 0
    stages.append(
        Stage([*command("dl-probe"), "-i", "0.2", "--patience", "0"], DOCKER_HOST=fake_engine.url)
    )
    assert stages[-1].end() == 69
    assert stages[-1].echoes
    shown = stages[-1].shown
    last = shown.split("\r\n")[-2]
    said = f"dl-probe: no Docker engine answers at {fake_engine.url}: "
    assert last.rpartition("\x1b[?25h")[2] == f"{said}what answers there is no Docker engine"
    # There may be no table and no hidden cursor before the first sample.
    assert shown.rfind("\x1b[?25h") >= shown.rfind("\x1b[?25l")


@pytest.mark.slow
def test_lines_on_standard_error_come_above_the_table(fake_engine, stages) -> None:
    stages.append(
        Stage([*command("dl-probe"), "-v", "-i", "0.1", "-c", "3"], DOCKER_HOST=fake_engine.url)
    )
    assert stages[-1].end() == 0
    shown = stages[-1].shown
    assert shown.count("dl-probe: sampled") == 3
    for part in shown.split("dl-probe: sampled")[2:]:
        assert part.startswith(" 1 node, 1 container\r\n")
    # Each of them takes the place of the table: its four lines are erased.
    assert shown.count("\r\x1b[2K" + "\x1b[1A\x1b[2K" * 3 + "dl-probe: ") >= 2


# Under a shell, which stops it, sends it into the background and takes it back


@pytest.fixture
def shell(fake_engine: FakeEngine, stages: list[Stage], tmp_path: Path) -> Stage:
    script = tmp_path / "dl-probe"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command("dl-probe"))} "$@"\n')
    script.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    stages.append(
        Stage(
            ["bash", "--norc", "--noprofile", "-i"],
            PATH=path,
            PS1="ready> ",
            DOCKER_HOST=fake_engine.url,
        )
    )
    stages[-1].until("ready> ")
    return stages[-1]


def said(shell: Stage, line: str, pattern: str) -> str:
    """Type a command at the prompt; return what it prints up to a pattern."""
    begin = len(shell.shown)
    shell.type(line + "\n")
    end = shell.until(pattern, begin + len(line))
    return shell.shown[begin:end]


@pytest.mark.slow
def test_a_stopped_table_leaves_the_terminal_to_the_shell(shell) -> None:
    said(shell, "dl-probe -i 600", "fake-job")
    shell.until_it(lambda: not shell.echoes)
    begin = len(shell.shown)
    shell.type("\x1a")
    shell.until(rf"{ENTRY}.*Stopped.*ready> ", begin)
    settings = said(shell, "stty -a; echo 'do''ne'", "done\r\n")
    assert " echo " in settings
    assert " icanon " in settings
    said(shell, "fg", "fake-host.*fake-job")
    shell.until_it(lambda: not shell.echoes)
    said(shell, "q", "ready> ")
    assert "code=0" in said(shell, "echo co''de=$?", r"code=\d+")
    assert " echo " in said(shell, "stty -a; echo 'do''ne'", "done\r\n")


@pytest.mark.slow
def test_in_the_background_it_draws_nothing_and_takes_no_keys(shell) -> None:
    said(shell, "dl-probe -i 0.1", "fake-job")
    begin = len(shell.shown)
    shell.type("\x1a")
    shell.until("Stopped.*ready> ", begin)
    said(shell, "bg", "ready> ")
    text = said(shell, "sleep 1; echo 'do''ne'", "done\r\n")
    assert "fake-job" not in text
    assert "Running" in said(shell, "jobs; echo 'do''ne'", "done\r\n")
    said(shell, "fg", "fake-host.*fake-job")
    said(shell, "q", "ready> ")
    assert "code=0" in said(shell, "echo co''de=$?", r"code=\d+")


@pytest.mark.slow
def test_started_in_the_background_it_draws_nothing_and_is_not_stopped(shell: Stage) -> None:
    said(shell, "dl-probe -i 0.1 &", "ready> ")
    text = said(shell, "sleep 2; jobs; echo 'do''ne'", "done\r\n")
    assert "Running" in text
    assert "fake-job" not in text
    said(shell, "kill %1; wait; echo 'do''ne'", "done\r\n")
