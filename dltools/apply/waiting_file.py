"""The file that tells owners, who may not ask dl-apply, which containers wait: `--tell FILE`.

It is plain text, mode 0644, and appears whole. A record in the state directory names it, so that
whoever takes the state's lock after a killed run removes it: a watchdog, the next run, an undo.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dltools.apply.history import Held
from dltools.apply.turn_schedule import TurnWait
from dltools.engine.state_folder import StateFolder
from dltools.errors import DltoolsError, OutputError
from dltools.notation.json_values import parse_json
from dltools.notation.limits import weight_of
from dltools.text import printable
from dltools.whole_files import atomic_file

_MARK = "# Containers that wait, by dl-apply"
"""How the file begins: another is not removed."""

_FOLDER, _RECORD = "told", "file.json"
_LONGEST_NAME, _LONGEST_WHY, _LONGEST_CONTACT = 80, 120, 200

_LEAST_S, _STALE_S = 1.0, 10.0
"""How often the file is written at most, and at least (ours): it says when it was."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """A container that waits: how, since when and until when at the latest (seconds since the
    epoch, 0: the reason says), and why."""

    host: str
    name: str
    how: str
    since: float
    until: float
    why: str


class WaitingFile:
    """The file of one run."""

    def __init__(
        self,
        path: Path | None = None,
        home: Path = Path(),
        contact: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Without a path, nothing is written. `home` is the state directory, `contact` whom to ask.
        Raises `OutputError` where the file cannot be created."""
        self._path, self._clock = path, clock
        self._contact = printable(contact)[:_LONGEST_CONTACT]
        self._since: dict[str, float] = {}  # since when containers wait at a low weight
        self._said: Sequence[_Wait] = ()
        self._written = 0.0
        if path is not None:
            with suppress(OSError):
                if _beginning(path) not in (b"", _MARK.encode()):
                    raise OutputError(f"cannot create {path}: it is another file; name a new one")
            record = json.dumps({"v": 1, "path": str(path.absolute())})
            StateFolder(home / _FOLDER).write(_RECORD, record.encode())
            self._home = home
            self._write(())

    def update(self, turns: Iterable[tuple[str, TurnWait]], held: Mapping[str, Held]) -> None:
        """Write who waits, if that has changed. `turns`: who is paused until its turn, and on which
        host; `held`: what the run has made of containers, by id."""
        now = self._clock()
        if self._path is None or now - self._written < _LEAST_S:
            return
        waits = sorted(
            [*_of_turns(turns, now), *self._of_weights(held, now)],
            key=lambda wait: (wait.host, wait.until, wait.name),
        )
        if waits != self._said or now - self._written >= _STALE_S:
            with suppress(OSError, OutputError):  # the next one may succeed
                self._write(waits)

    def remove(self) -> None:
        """Remove the file: nobody waits any more."""
        if self._path is not None:
            remove_left(self._home)

    def _of_weights(self, held: Mapping[str, Held], now: float) -> Iterable[_Wait]:
        """Yield the containers that wait at a lower weight than they had."""
        low = {id_: hold for id_, hold in held.items() if hold.is_lower}
        self._since = {id_: self._since.get(id_, now) for id_ in low}
        for id_, hold in low.items():
            how = f"weight {hold.settings['weight']:g} of {weight_of(hold.own):g}"
            yield _Wait(hold.host, hold.name, how, round(self._since[id_]), 0.0, hold.reason)

    def _write(self, waits: Sequence[_Wait]) -> None:
        assert self._path is not None
        now = self._clock()
        with atomic_file(self._path, mode=0o644) as out:
            out.write(_text(waits, now, self._contact).encode())
        self._said, self._written = waits, now


def _of_turns(turns: Iterable[tuple[str, TurnWait]], now: float) -> Iterable[_Wait]:
    for host, turn_wait in turns:
        since, until = round(now - turn_wait.waited_s), round(now + turn_wait.left_s)
        why = f"{turn_wait.place} of {turn_wait.groups} in the queue"
        yield _Wait(host, turn_wait.turn.name, "paused", since, until, why)


def _text(waits: Sequence[_Wait], now: float, contact: str) -> str:
    """Return what the file says at a time (seconds since the epoch)."""
    said = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    lines = [f"{_MARK} (process {os.getpid()}), {said}."]
    lines += [f"# Ask: {contact}"] if contact else []
    rows = [("# CONTAINER", "HOST", "WAITS", "SINCE", "AT THE LATEST", "WHY")] if waits else []
    rows += [
        (
            printable(wait.name)[:_LONGEST_NAME],
            printable(wait.host)[:_LONGEST_NAME],
            wait.how,
            _clock_time(wait.since),
            _clock_time(wait.until),
            printable(wait.why)[:_LONGEST_WHY],
        )
        for wait in waits
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows] or ["# None waits."]
    return "".join(f"{line}\n" for line in lines)


def _clock_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S") if seconds else "-"


def _beginning(path: Path) -> bytes:
    """Return as much of a file as a mark is long. Raises OSError, also for a link."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(len(_MARK))


def remove_left(home: Path) -> None:
    """Remove the file that a run of this state directory keeps, or has left. The state must be
    locked."""
    folder = StateFolder(home / _FOLDER)
    with suppress(OSError, DltoolsError, ValueError, KeyError, TypeError):
        if (data := folder.read(_RECORD)) is None:
            return
        path = Path(parse_json(data)["path"])
        with suppress(FileNotFoundError):
            if _beginning(path) == _MARK.encode():
                path.unlink()
        folder.remove(_RECORD)
