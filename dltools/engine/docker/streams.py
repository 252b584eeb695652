"""The log of a container: from its file where that can be read, else cut from Docker's answer.

Docker reads all of a log to find a time, but from its end to find the last lines: so these are
asked for first, and more as long as they do not reach back far enough.
"""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from dltools.engine.docker import http
from dltools.engine.docker.http import CUT_OFF, Answer, Params, Transport, quoted
from dltools.engine.interface import LARGEST_BACKLOG, Container, LogFlow, RefusedError
from dltools.engine.log_reading import cut_message, entry_of
from dltools.engine.patience import LOG_TIMEOUT_S, comes_true

_FIRST_LINES, _MORE = 2_000, 8
"""How many of the last lines are asked for first, and how many times more then."""

FOLLOWED_LINES = 10_000
"""The most lines of what a log already has with which following begins."""


def log_file(container: Container) -> Path | None:
    """Return the path of a container's log, None where there is none that can be read here."""
    path = Path(str(container.native.get("LogPath") or "/"))
    if not (os.access(path, os.R_OK) and path.is_file()):
        return None
    with path.open("rb") as file:
        first = file.readline(1 << 16)
    return path if not first or entry_of(first) is not None else None


def asked_log(transport: Transport, container: Container, since: float) -> Iterator[list[bytes]]:
    """Yield the entries of a log since a time (seconds since 1970), as the engine gives them. Of
    more than `LARGEST_BACKLOG` bytes the newest come, then `RefusedError`."""
    lines, first = _FIRST_LINES, b""
    while True:
        newest = _Newest()
        for entries in _last_lines(transport, container, since, lines):
            newest.add(entries)
        is_whole = newest.count < lines // 2 or newest.first == first
        if is_whole or newest.is_full:
            break
        lines, first = lines * _MORE, newest.first
    yield from newest.pieces
    if newest.is_full:
        raise RefusedError(cut_message())


class _Newest:
    """The newest entries of a log, as many as are kept in memory."""

    def __init__(self) -> None:
        self.pieces: deque[list[bytes]] = deque()
        self.count = 0
        self.first = b""
        self.is_full = False
        self._size = 0

    def add(self, entries: list[bytes]) -> None:
        if entries and not self.count:
            self.first = entries[0]
        self.count += len(entries)
        self.pieces.append(entries)
        self._size += sum(map(len, entries))
        while self._size > LARGEST_BACKLOG:
            self.is_full = True
            self._size -= sum(map(len, self.pieces.popleft()))


def _last_lines(
    transport: Transport, container: Container, since: float, lines: int
) -> Iterator[list[bytes]]:
    """Yield what comes of the last lines since a time. Raises `RefusedError` where the engine
    fails on the way."""
    path, params = _request(container, since, follow=False, tail=lines)
    splitter = EntrySplitter(_is_terminal(container))
    until = time.monotonic() + LOG_TIMEOUT_S
    for data in transport.chunks(path, params, LOG_TIMEOUT_S):
        yield splitter.feed(data)
        if splitter.fault:
            break
        if time.monotonic() > until:
            raise RefusedError(f"not read within {LOG_TIMEOUT_S:g} s")
    yield splitter.end()
    if splitter.fault:
        raise RefusedError(splitter.fault)


def followed_log(
    transport: Transport, container: Container, since: float, *, is_new_only: bool
) -> LogFlow:
    """Return a log as it comes: the newest `FOLLOWED_LINES` since a time, or new ones only."""
    lines = 0 if is_new_only else FOLLOWED_LINES
    path, params = _request(container, since, follow=True, tail=lines)
    return FollowedLog(transport.begin(path, params), _is_terminal(container))


def _request(container: Container, since: float, *, follow: bool, tail: int) -> tuple[str, Params]:
    params: Params = {
        "stdout": 1,
        "stderr": 1,
        "timestamps": 1,
        "follow": int(follow),
        "tail": tail,
        "since": f"{since:.9f}",
    }
    return f"/containers/{quoted(container.id)}/logs", params


def _is_terminal(container: Container) -> bool:
    return bool((container.native.get("Config") or {}).get("Tty"))


LONGEST_ENTRY = 1 << 20
"""Bytes after which a line of a terminal that never ends is cut, and beyond which no payload of a
frame goes: the engine cuts lines at 16 KiB."""

_HEAD = 8
"""Bytes before each payload of a log that is no terminal's: its stream, three zeros, its length."""

_ERROR = 3
"""The last number of a stream: what comes in it is the engine's own error."""


class EntrySplitter:
    """Cuts a log that comes in pieces into entries: the lines of a terminal, else the payloads of
    frames."""

    def __init__(self, tty: bool) -> None:
        self._has_lines = tty
        self._rest = b""
        self.fault = ""
        """Why nothing more can be read, "" while there is no reason."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the entries that are now whole; none after a fault."""
        if self.fault:
            return []
        data = self._rest + data
        entries, end, self.fault = (*_cut_lines(data), "") if self._has_lines else _cut_frames(data)
        self._rest = b"" if self.fault else data[end:]
        return entries

    def end(self) -> list[bytes]:
        """Return a terminal's last line, if it has no end. A frame without its end is a fault."""
        rest, self._rest = self._rest, b""
        if rest and not self._has_lines:
            self.fault = CUT_OFF
        return [rest] if self._has_lines and rest else []


_MUCH = 1 << 13
"""Bytes: a local socket holds some 280 writes, and the engine writes line by line (measured)."""

_WAITS_S = 0.01
_REFILLS_S, _LOOK_S, _LONGEST_TAKE_S = 0.05, 0.001, 0.5
"""How long an engine that has more may take to write so much again, and all of it (ours)."""

_NOTHING_YET = (errno.EAGAIN, 2)
"""Numbers of errors that mean that nothing has come; 2 is that of TLS."""


class FollowedLog(LogFlow):
    """A log as it goes on. What has not been taken waits in the socket, and then at the engine."""

    def __init__(self, answer: Answer, tty: bool) -> None:
        answer.connection.setblocking(False)
        self._connection = answer.connection
        self._received = bytearray(answer.begun)
        self._splitter = EntrySplitter(tty)
        self._has_all = False
        self.is_behind = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._has_all or bool(self.fault)

    def _drain(self) -> int:
        """Take what has come into the socket, up to `LARGEST`, and return how many bytes wait to be
        given."""
        while not self._has_all and len(self._received) < http.LARGEST:
            try:
                data = self._connection.recv(1 << 18)
            except OSError as error:
                if error.errno in _NOTHING_YET:
                    break
                data = b""
            self._received += data
            if not data:
                self._end()
        return len(self._received)

    def _is_refilled(self) -> bool:
        """Tell whether much comes in a moment: the engine has more than the socket holds."""
        enough = len(self._received) + _MUCH
        return comes_true(lambda: self._drain() >= enough, _REFILLS_S, _LOOK_S)

    def take(self) -> list[bytes]:
        """Return the entries that have come since the last call, without waiting."""
        has_all, until = self._has_all, time.monotonic() + _LONGEST_TAKE_S
        is_burst = self._drain() >= _MUCH
        while is_burst and time.monotonic() < until:
            is_burst = self._is_refilled()
        came = bytes(self._received)
        self._received.clear()
        self.is_behind = len(came) >= http.LARGEST
        entries = self._splitter.feed(came)
        if has_all:
            entries += self._splitter.end()
        self.fault = self._splitter.fault
        return entries

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""

        def has_all() -> bool:
            self._drain()
            return self._has_all

        comes_true(has_all, seconds, _WAITS_S)

    def close(self) -> None:
        """Take no more."""
        self._received.clear()
        self._end()

    def _end(self) -> None:
        self._has_all = True
        self._connection.close()


def _cut_lines(data: bytes) -> tuple[list[bytes], int]:
    """Return the lines, with their ends, and where the last of them ends."""
    lines, start, size = [], 0, len(data)
    while (at := data.find(b"\n", start)) >= 0 or size - start > LONGEST_ENTRY:
        end = at + 1 if at >= 0 else size
        lines.append(data[start:end])
        start = end
    return lines, start


def _cut_frames(data: bytes) -> tuple[list[bytes], int, str]:
    """Return the payloads of whole frames, where the last of them ends, and what is wrong with the
    next one, "" for nothing."""
    entries: list[bytes] = []
    start, size = 0, len(data)
    while size - start >= _HEAD:
        stream, payload = data[start], start + _HEAD
        length = int.from_bytes(data[start + 4 : payload], "big")
        if data[start + 1 : start + 4] != b"\0\0\0" or length > LONGEST_ENTRY or stream > _ERROR:
            return entries, start, "the engine's answer is not a log"
        end = payload + length
        if end > size:
            break
        if stream == _ERROR:
            said = data[payload:end].decode(errors="replace")
            return entries, start, " ".join(said.split()) or "the engine failed to read it"
        entries.append(data[payload:end])
        start = end
    return entries, start, ""
