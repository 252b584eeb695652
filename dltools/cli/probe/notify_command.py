"""Runs the command of `dl-probe --notify`, a child for each notice; none delays a sample.

Threads start the children and wait for them. The command gets the notice as a line of JSON on its
standard input; what it prints is dropped, but for the end of its standard error where it fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime
from typing import Any, Self

from dltools.cli.exits import print_message
from dltools.notation.json_values import to_json_number
from dltools.notation.times import format_time
from dltools.probe.notices import Notice, Notices
from dltools.text import printable, writable

MOST_CHILDREN = 4
"""Children at a time."""

MOST_WAITING = 100
"""Notices that wait for a child or have one; those beyond are dropped."""

LIMIT_S = 30.0
"""Seconds after which a child is killed, with what it has started in its process group."""

_FAREWELL_S = 3.0
"""Seconds for the notices under way when dl-probe is ended."""

_KEPT = 4096
"""Bytes of the end of a child's standard error that are kept."""

_LONGEST = 500
"""Characters of a text in a notice."""

_NAMED = ("host", "container_id", "container_name", "image", "job", "user", "role", "started_at")
"""Columns of the container's row that a notice repeats."""


def as_json(notice: Notice) -> str:
    """Return a notice as one line of JSON; numbers that are not finite are text."""
    row = notice.container
    fields: dict[str, Any] = {
        "event": notice.event.value,
        "time": format_time(notice.time),
        "message": notice.message,
        **{name: row[name] for name in _NAMED if row.get(name) is not None},
        **notice.details,
    }
    return json.dumps({name: _plain(value) for name, value in fields.items()}) + "\n"


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
        self._pool = ThreadPoolExecutor(MOST_CHILDREN)
        self._waiting: set[Future[None]] = set()
        self._children: set[int] = set()

    def __enter__(self) -> Self:
        """Nothing is begun yet."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Wait for the notices under way, as long as a child may take, or shortly where something
        ends dl-probe; then kill what is left."""
        try:
            wait(self._waiting, self._limit_s + 1 if kind is None else _FAREWELL_S)
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for pid in tuple(self._children):
                _kill(pid)
            self._pool.shutdown()

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in a sample; return at once."""
        for notice in self._notices.take(rows):
            self._waiting = {future for future in self._waiting if not future.done()}
            if len(self._waiting) < MOST_WAITING:
                self._waiting.add(self._pool.submit(self._tell, notice))
            else:
                print_message(f"--notify: dropped {_named(notice)}: {MOST_WAITING} wait")

    def _tell(self, notice: Notice) -> None:
        try:
            fault = self._run(notice)
        except Exception as error:  # the next notice is told all the same
            fault = f"{type(error).__name__}: {error}"
        if fault:
            lost = f"{_named(notice)} is not reported"
            print_message(f"--notify {self._words[0]}: {fault}: {lost}")

    def _run(self, notice: Notice) -> str:
        """Run the command for a notice; return what went wrong, "" where nothing did."""
        line = as_json(notice).encode()
        with os.fdopen(os.memfd_create("stderr"), "w+b") as errors:
            try:
                child = subprocess.Popen(
                    self._words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                return error.strerror or str(error)
            self._children.add(child.pid)
            try:
                child.communicate(line, self._limit_s)
            except subprocess.TimeoutExpired:
                _kill(child.pid)
                child.wait()
                return f"killed after {self._limit_s:g} s"
            finally:
                self._children.discard(child.pid)
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _KEPT))
            lines = errors.read().decode(errors="replace").strip().splitlines()
        code = child.returncode
        if code == 0:
            return ""
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        return ", ".join([ended, *(printable(last.strip())[:200] for last in lines[-1:])])


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _named(notice: Notice) -> str:
    """Return what a notice is about: finished of mlp."""
    name = notice.container.get("container_name") or notice.container["container_id"]
    return f"{notice.event} of {printable(name)}"
