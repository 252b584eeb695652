"""The log of a container, cut from Docker's answer into entries."""

from __future__ import annotations

from dltools.engine.docker import transport
from dltools.engine.docker.transport import Flow

LONGEST_ENTRY = 1 << 20
"""Bytes after which a line of a terminal that never ends is cut."""

_HEAD = 8
"""Bytes before each payload of a log that is no terminal's; the last four say its length."""


class EntrySplitter:
    """Cuts a log that comes in pieces into entries: the lines of a terminal, else the payloads of
    frames."""

    def __init__(self, tty: bool) -> None:
        self._cut = _cut_lines if tty else _cut_frames
        self._has_lines = tty
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the entries that are now whole."""
        data = self._rest + data
        found, end = self._cut(data)
        self._rest = data[end:]
        return found

    def end(self) -> list[bytes]:
        """Return a terminal's last line, if it has no end."""
        rest, self._rest = self._rest, b""
        return [rest] if self._has_lines and rest else []


class FollowedLog:
    """A log as it goes on: the interface's `LogFlow`."""

    def __init__(self, flow: Flow, tty: bool) -> None:
        self._flow = flow
        self._splitter = EntrySplitter(tty)
        self.is_behind = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._flow.ended

    def take(self) -> list[bytes]:
        """Return the entries that have come since the last call, without waiting."""
        has_ended = self._flow.ended
        came = self._flow.take()
        self.is_behind = len(came) >= transport.LARGEST
        entries = self._splitter.feed(came)
        if has_ended:
            entries += self._splitter.end()
        return entries

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        self._flow.wait(seconds)

    def close(self) -> None:
        """Take no more."""
        self._flow.close()


def _cut_lines(data: bytes) -> tuple[list[bytes], int]:
    """Return the lines, with their ends, and where the last of them ends."""
    found, start, size = [], 0, len(data)
    while (at := data.find(b"\n", start)) >= 0 or size - start > LONGEST_ENTRY:
        end = at + 1 if at >= 0 else size
        found.append(data[start:end])
        start = end
    return found, start


def _cut_frames(data: bytes) -> tuple[list[bytes], int]:
    """Return the payloads of whole frames, and where the last of them ends."""
    found, start, size = [], 0, len(data)
    while size - start >= _HEAD:
        end = start + _HEAD + int.from_bytes(data[start + 4 : start + _HEAD], "big")
        if end > size:
            break
        found.append(data[start + _HEAD : end])
        start = end
    return found, start
