"""The command of --notify: what it gets, and that neither a slow nor a failing one delays."""

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.observed_rows import at, container

from dltools.cli import options
from dltools.cli.probe.notify_command import MOST_CHILDREN, MOST_WAITING, Notifier, as_json
from dltools.probe.notices import Event, Notice


class Many:
    """Judges each sample to be so many notices."""

    def __init__(self, count: int = 1) -> None:
        self.count = count

    def take(self, rows: list[Any]) -> list[Notice]:  # noqa: ARG002
        return [notice() for _ in range(self.count)]


def notice(**more: Any) -> Notice:
    row = container(5, "job", 1.0, role="training", job=None) | more
    return Notice(Event.FAILED, at(9), row, "job: failed", {"exit_code": 1, "value": float("nan")})


def script(tmp_path: Path, body: str, name: str = "tell") -> str:
    file = tmp_path / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def run(command: str, count: int = 1, limit_s: float = 20.0) -> float:
    """Take one sample of so many notices, and return how long that took."""
    with Notifier(options.command(command), Many(count), limit_s) as notifier:  # type: ignore[arg-type]
        begun = time.monotonic()
        notifier.take([])
        return time.monotonic() - begun


def test_the_notice_is_one_line_of_json() -> None:
    line = as_json(notice(container_name="j" * 600))
    assert line.count("\n") == 1
    found = json.loads(line)
    assert found["event"] == "failed"
    assert found["time"] == "2026-01-01T00:00:09.000000Z"
    assert found["started_at"] == "2026-01-01T00:00:00.000000Z"
    assert (found["exit_code"], found["value"]) == (1, "NaN")
    assert len(found["container_name"]) == 500
    assert "job" not in found


def test_the_command_gets_it(tmp_path) -> None:
    run(script(tmp_path, f"cat > {tmp_path}/got"))
    assert json.loads((tmp_path / "got").read_text())["message"] == "job: failed"


def test_one_that_does_not_read_is_fine(capfd) -> None:
    run("true")
    assert capfd.readouterr() == ("", "")


def test_a_failing_one_gives_one_line(tmp_path, capfd) -> None:
    run(script(tmp_path, "echo out; echo no >&2; echo 'no route' >&2; exit 3"))
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "tell: exit code 3, no route: failed of job is not reported" in err


@pytest.mark.slow
def test_a_slow_one_does_not_delay_and_is_killed_and_reaped(tmp_path, capfd) -> None:
    took = run(script(tmp_path, f"echo $$ >> {tmp_path}/pids; sleep 600 & sleep 600"), 2, 0.5)
    assert took < 0.3
    assert capfd.readouterr().err.count("killed after 0.5 s") >= 1
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_chatty_one_is_read_to_its_end(capfd, tmp_path) -> None:
    run(script(tmp_path, "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1"))
    assert len(capfd.readouterr().err) < 400


@pytest.mark.slow
def test_children_at_a_time_and_notices_that_wait_are_bounded(tmp_path, capfd) -> None:
    body = f"touch {tmp_path}/$$.on; ls {tmp_path}/*.on | wc -l >> {tmp_path}/seen; sleep 0.02; "
    body += f"rm {tmp_path}/$$.on"
    run(script(tmp_path, body), MOST_WAITING + 50)
    counts = list(map(int, (tmp_path / "seen").read_text().split()))
    assert max(counts) <= MOST_CHILDREN
    dropped = capfd.readouterr().err.count("dropped failed of job")
    assert len(counts) + dropped == MOST_WAITING + 50
    assert dropped > 0


@pytest.mark.slow
def test_an_interruption_waits_shortly(tmp_path) -> None:
    begun = time.monotonic()
    command = options.command(script(tmp_path, "sleep 600"))
    with pytest.raises(KeyboardInterrupt), Notifier(command, Many()) as notifier:  # type: ignore[arg-type]
        notifier.take([])
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 10


def test_whatever_becomes_of_one_notice_the_next_are_told(tmp_path, monkeypatch, capfd) -> None:
    tried = []

    def broken_once(found: Notice) -> str:
        tried.append(found)
        if len(tried) <= MOST_CHILDREN:
            raise ValueError("no such thing")
        return json.dumps({"event": found.event})

    monkeypatch.setattr("dltools.cli.probe.notify_command.as_json", broken_once)
    told = tmp_path / "told"
    run(script(tmp_path, f"cat >> {told}"), MOST_CHILDREN + 3)
    assert told.read_text().count("failed") == 3
    assert capfd.readouterr().err.count("ValueError: no such thing") == MOST_CHILDREN
