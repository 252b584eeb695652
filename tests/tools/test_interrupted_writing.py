"""A record that is being written when a signal ends a tool is written whole."""

import os
import signal
import subprocess
import sys
import time

import pytest

SIZE = 300_000
"""Bytes, more than a pipe holds."""

WRITE = f"""
import sys
import typer
from dltools.cli import exits

app = typer.Typer()

@app.command()
def command() -> None:
    with exits.unbroken():
        print("begins", file=sys.stderr, flush=True)
        sys.stdout.buffer.write(b"x" * {SIZE})
        sys.stdout.buffer.flush()
    sys.stdout.write("more")

exits.run(app)
"""


def begun(code: str = WRITE, **environment: str) -> subprocess.Popen[bytes]:
    """A tool that has begun to write a record that nobody reads yet."""
    made = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert made.stderr is not None
    assert made.stderr.readline() == b"begins\n"
    time.sleep(0.2)
    return made


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_the_first_signal_waits_for_the_end_of_a_record(number, code, unbuffered) -> None:
    tool = begun(PYTHONUNBUFFERED=unbuffered)
    os.kill(tool.pid, number)
    time.sleep(0.2)
    written, _ = tool.communicate(timeout=60)
    assert written == b"x" * SIZE
    assert tool.returncode == code


def test_the_second_signal_ends_a_tool_whose_output_nobody_reads() -> None:
    tool = begun()
    for _ in range(2):
        os.kill(tool.pid, signal.SIGTERM)
        time.sleep(0.2)
    assert tool.wait(timeout=60) in (143, -signal.SIGTERM)


def test_a_signal_that_is_ignored_stays_so() -> None:
    ignores = "import signal, sys\nsignal.signal(2, signal.SIG_IGN)\n"
    tool = begun(WRITE.replace("import sys\n", ignores, 1))
    os.kill(tool.pid, signal.SIGINT)
    written, _ = tool.communicate(timeout=60)
    assert written == b"x" * SIZE + b"more"
    assert tool.returncode == 0
