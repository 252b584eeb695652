"""A proxy between the tools and a real engine that stumbles: it cuts, delays, garbles and refuses.

Each connection carries one request, as the tools make them. The request is forwarded first, unless
the fault stands for it: an engine may do what it was asked, and its answer may be lost.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

DELAY_S = 3.0
_PIECE = 1 << 16

KINDS = {
    "version": r"GET /version",
    "info": r"GET /info",
    "list": r"GET /containers/json",
    "inspect": r"GET /containers/[^/]+/json",
    "follow": r"GET /containers/[^/]+/logs\?.*follow=(1|True|true)",
    "logs": r"GET /containers/[^/]+/logs",
    "top": r"GET /containers/[^/]+/top",
    "stats": r"GET /containers/[^/]+/stats",
    "archive": r"(GET|HEAD|PUT) /containers/[^/]+/archive",
    "past events": r"GET /events\?.*until",
    "events": r"GET /events",
    "update": r"POST /containers/[^/]+/update",
    "pause": r"POST /containers/[^/]+/pause",
    "unpause": r"POST /containers/[^/]+/unpause",
}
"""The kinds of requests, and how to tell them; the first that fits counts."""


class Fault(StrEnum):
    """What goes wrong with an answer."""

    CUT = "cut before the answer"
    HALF = "cut in the middle"
    RESET = "reset"
    DELAY = "delay"
    NOISE = "no HTTP"
    GARBAGE = "garbage in the body"
    REFUSED = "500"
    FRAME = "error frame"


def kind_of(line: str) -> str:
    plain = re.sub(r" /v[0-9.]+/", " /", line, count=1)
    for kind, pattern in KINDS.items():
        if re.match(pattern, plain):
            return kind
    return plain.split("?")[0]


class StumblingEngine:
    """A socket at `path` that forwards to the engine at `target`. `asked` counts the requests by
    kind, and `met` the faults that have struck."""

    def __init__(self, path: Path, target: str) -> None:
        """Listen; nothing goes wrong until `stumble` is called."""
        self.url = f"unix://{path}"
        self.asked: Counter[str] = Counter()
        self.met: Counter[tuple[str, Fault]] = Counter()
        self._target = target.removeprefix("unix://")
        self._planned: dict[str, deque[Fault | None]] = {}
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> StumblingEngine:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            ends = [self._listener, *self._open]
        for one in ends:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def stumble(self, kind: str, faults: Iterable[Fault | None]) -> None:
        """Let the next requests of a kind meet these faults, None for no fault."""
        with self._lock:
            self._planned[kind] = deque(faults)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Forward a request and its answer, or fail."""
        with client, socket.socket(socket.AF_UNIX) as engine, self._kept(client, engine):
            try:
                request = _request(client)
                fault = self._next(kind_of(request.partition(b"\r\n")[0].decode("latin-1")))
                engine.connect(self._target)
                self._answer(client, engine, request, fault)
            except OSError:
                pass  # one of both has gone away

    @contextlib.contextmanager
    def _kept(self, *ends: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.update(ends)
        try:
            yield
        finally:
            with self._lock:
                self._open.difference_update(ends)

    def _next(self, kind: str) -> Fault | None:
        with self._lock:
            self.asked[kind] += 1
            planned = self._planned.get(kind)
            fault = planned.popleft() if planned else None
            if fault is not None:
                self.met[kind, fault] += 1
            return fault

    def _answer(
        self, client: socket.socket, engine: socket.socket, request: bytes, fault: Fault | None
    ) -> None:
        if fault is Fault.RESET:  # what is not read makes a reset of a close
            engine.sendall(request)
            client.sendall(_some(engine))
            return
        _consume(client, len(request))
        if fault is Fault.REFUSED:
            said = json.dumps({"message": "the engine stumbles"}).encode()
            client.sendall(_head(500, "application/json", len(said)) + said)
        elif fault is Fault.NOISE:
            client.sendall(b"\x00\xff not of HTTP \r\n\r\n\x80")
        elif fault is Fault.GARBAGE:
            engine.sendall(request)
            head, _, _ = _some(engine).partition(b"\r\n\r\n")
            kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(_LENGTH)]
            client.sendall(b"\r\n".join(kept) + b"\r\n\r\n" + b'{"\x80\xff]]' * 8)
        else:
            engine.sendall(request)
            if fault is Fault.DELAY:
                time.sleep(DELAY_S)
            if fault is Fault.CUT:
                _some(engine)
                return
            _FORWARD.get(fault, _forward)(client, engine)


_LENGTH = b"content-length:"


def _request(client: socket.socket) -> bytes:
    """Look at a request without taking it, until all of it is there."""
    while True:
        data = client.recv(_PIECE, socket.MSG_PEEK)
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if not data or (end and len(body) >= int(length[1] if length else 0)):
            return data
        time.sleep(0.001)


def _consume(client: socket.socket, size: int) -> None:
    while size > 0:
        size -= len(client.recv(size)) or size


def _some(engine: socket.socket) -> bytes:
    """Return the beginning of an answer, about half of it where it is short."""
    data = engine.recv(_PIECE)
    if b"\r\n\r\n" in data and not data.partition(b"\r\n\r\n")[2]:
        engine.settimeout(2)
        with contextlib.suppress(OSError):
            data += engine.recv(_PIECE)
    head, end, body = data.partition(b"\r\n\r\n")
    return head + end + body[: (len(body) + 1) // 2]


def _head(status: int, kind: str, length: int) -> bytes:
    return (
        f"HTTP/1.0 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n".encode()
    )


def _forward(client: socket.socket, engine: socket.socket) -> None:
    """Forward all of an answer, until one of both ends it."""
    watch = threading.Thread(target=_until_gone, args=(client, engine), daemon=True)
    watch.start()
    while data := engine.recv(_PIECE):
        client.sendall(data)
    client.shutdown(socket.SHUT_RDWR)  # the watch still reads from it


def _until_gone(client: socket.socket, engine: socket.socket) -> None:
    """End an answer that goes on when whoever asked has gone."""
    with contextlib.suppress(OSError):
        while client.recv(_PIECE):
            pass
        engine.shutdown(socket.SHUT_RDWR)


def _half(client: socket.socket, engine: socket.socket) -> None:
    client.sendall(_some(engine))


def _frame(client: socket.socket, engine: socket.socket) -> None:
    """Put the engine's own error into a log, as it does where it cannot read on, and end it."""
    data = _some(engine)
    head, end, _ = data.partition(b"\r\n\r\n")
    said = b"Error grabbing logs: the engine stumbles\n"
    client.sendall(head + end + b"\x03\x00\x00\x00" + len(said).to_bytes(4, "big") + said)


_FORWARD: dict[Fault | None, Callable[[socket.socket, socket.socket], None]] = {
    Fault.HALF: _half,
    Fault.FRAME: _frame,
}
