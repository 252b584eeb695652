"""Runs the command of `dl-probe --notify`, a child for each notice; none delays a sample.

Threads start the children and wait for them. The command gets the notice as a line of JSON on its
standard input; what it prints is dropped, but for the end of its standard error where it fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from dltools.cli.exits import print_message
from dltools.errors import ConfigError
from dltools.notation.json_values import to_json_number
from dltools.notation.times import format_time
from dltools.probe.notices import Notice, Notices
from dltools.text import printable, writable

MOST_CHILDREN = 4
"""Children at a time."""

MOST_WAITING = 100
"""Notices that wait for a child; those beyond are dropped."""

LIMIT_S = 30.0
"""Seconds after which a child is killed, with what it has started in its process group."""

_FAREWELL_S = 3.0
"""Seconds for the notices under way when dl-probe is ended."""

_KEPT = 4096
"""Bytes of the end of a child's standard error that are kept."""

_LONGEST = 500
"""Characters of a text in a notice: the pipe to a child takes all of it at once."""

_NAMED = ("host", "container_id", "container_name", "image", "job", "user", "role", "started_at")
"""Columns of the container's row that a notice repeats."""


def parse_command(text: str) -> list[str]:
    """Return the words of a command: the path of a program, or words as a shell would split them.

    Raises `ConfigError` where there is no such program.
    """
    if os.access(text, os.X_OK) and not os.path.isdir(text):  # noqa: PTH112
        return [text]
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--notify {text}: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise ConfigError(f"--notify {text}: no such program; it is run without a shell")
    return words


def as_json(notice: Notice) -> str:
    """Return a notice as one line of JSON; numbers that are not finite are text."""
    row = notice.container
    found: dict[str, Any] = {
        "event": notice.event.value,
        "time": format_time(notice.time),
        "message": notice.message,
        **{name: row[name] for name in _NAMED if row.get(name) is not None},
        **notice.details,
    }
    return json.dumps({name: _plain(value) for name, value in found.items()}) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return to_json_number(value)
    if isinstance(value, str):
        return writable(value)[:_LONGEST]
    return format_time(value) if isinstance(value, datetime) else value


class Notifier:
    """Judges samples, and runs the command for what there is to tell."""

    def __init__(self, words: Sequence[str], notices: Notices, limit_s: float = LIMIT_S) -> None:
        """No thread runs before the first notice."""
        self._words, self._notices, self._limit_s = words, notices, limit_s
        self._waiting: queue.Queue[Notice] = queue.Queue(MOST_WAITING)
        self._threads: list[threading.Thread] = []
        self._children: set[int] = set()
        self._is_closed = threading.Event()

    def __enter__(self) -> Self:
        """Nothing is begun yet."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Wait for the notices under way, as long as a child may take, or shortly where something
        ends dl-probe; then kill what is left."""
        until = time.monotonic() + (self._limit_s + 1 if kind is None else _FAREWELL_S)
        try:
            while self._waiting.unfinished_tasks and time.monotonic() < until:
                time.sleep(0.05)
        finally:
            self._is_closed.set()
            for pid in tuple(self._children):
                _kill(pid)
            for thread in self._threads:
                thread.join(1.0)

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in a sample; return at once."""
        for notice in self._notices.take(rows):
            try:
                self._waiting.put_nowait(notice)
            except queue.Full:
                print_message(
                    f"--notify: dropped {notice.event} of {_name(notice)}: {MOST_WAITING} wait"
                )
                continue
            if len(self._threads) < min(MOST_CHILDREN, self._waiting.unfinished_tasks):
                self._threads.append(threading.Thread(target=self._work, daemon=True))
                self._threads[-1].start()

    def _work(self) -> None:
        while not self._is_closed.is_set():
            try:
                notice = self._waiting.get(timeout=0.5)
            except queue.Empty:
                continue
            try:
                fault = self._run(notice)
            except Exception as error:  # the next notice is told all the same
                fault = f"{type(error).__name__}: {error}"
            if fault:
                what = f"{notice.event} of {_name(notice)}"
                print_message(f"--notify {self._words[0]}: {fault}: {what} is not told")
            self._waiting.task_done()

    def _run(self, notice: Notice) -> str:
        """Run the command for a notice; return what went wrong, "" where nothing did."""
        try:
            child = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return error.strerror or str(error)
        assert child.stdin is not None and child.stderr is not None
        self._children.add(child.pid)
        until = time.monotonic() + self._limit_s
        try:
            os.set_blocking(child.stdin.fileno(), False)
            with contextlib.suppress(OSError):  # it need not read
                os.write(child.stdin.fileno(), as_json(notice).encode())
            child.stdin.close()
            said = _end_of(child.stderr.fileno(), until)
            code = child.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(child.pid)
            child.wait()
            return f"killed after {self._limit_s:g} s"
        finally:
            child.stderr.close()
            self._children.discard(child.pid)
        if code == 0:
            return ""
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        return f"{ended}, {said}" if said else ended


def _end_of(file: int, until: float) -> str:
    """Read all that a child says on standard error, but not beyond a time; return its last line."""
    kept = b""
    poll = select.poll()
    poll.register(file)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        chunk = os.read(file, _KEPT)
        if not chunk:
            break
        kept = (kept + chunk)[-_KEPT:]
        if time.monotonic() > until:
            break
    lines = kept.decode(errors="replace").strip().splitlines()
    return printable(lines[-1].strip())[:200] if lines else ""


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _name(notice: Notice) -> str:
    return printable(notice.container.get("container_name") or notice.container["container_id"])
