"""Answers that break off or are none: told as errors of the engine, over a socket and over TCP."""

import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import eventually

from dltools.engine.address import Address
from dltools.engine.docker.changes import Changes, DockerLimits
from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.docker.http import Transport
from dltools.engine.docker.streams import FollowedLog
from dltools.errors import DltoolsError, UnavailableError

VERSION = b'{"ApiVersion": "1.41", "MinAPIVersion": "1.12"}'
BEGUN = b'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n[{"Id": "'
NO_JSON = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n<html>"

Answer = Callable[[socket.socket], None]


def cut(connection: socket.socket) -> None:
    connection.sendall(BEGUN)


def reset(connection: socket.socket) -> None:
    connection.sendall(BEGUN)
    time.sleep(0.2)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def garbage(connection: socket.socket) -> None:
    connection.sendall(NO_JSON)


def flood(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x" * 4095 + b"\n")


class Server:
    """An engine that says its version, and then what a test wants; `open`: its connections."""

    def __init__(self, server: type[socketserver.BaseServer], place: Any) -> None:
        self.answer: Answer = garbage
        self.open = 0
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer.open += 1
                try:
                    if b"/version" in self.request.recv(1 << 16):
                        head = f"HTTP/1.0 200 OK\r\nContent-Length: {len(VERSION)}\r\n\r\n"
                        self.request.sendall(head.encode() + VERSION)
                    else:
                        outer.answer(self.request)
                except OSError:
                    pass
                finally:
                    outer.open -= 1

        self.server: Any = server(place, Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture(params=["socket", "tcp"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, Transport]]:
    if request.param == "socket":
        place = str(tmp_path / "s.sock")
        server = Server(socketserver.ThreadingUnixStreamServer, place)
        address = f"unix://{place}"
    else:
        server = Server(socketserver.ThreadingTCPServer, ("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{server.server.server_address[1]}"
    yield server, connect(Address(address, "the test"))
    server.server.shutdown()
    server.server.server_close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [(cut, "cut off"), (reset, "cut off|closed the connection"), (garbage, "not JSON")],
)
def test_an_answer_that_breaks_off_is_told(served, answer, why) -> None:
    server, transport = served
    server.answer = answer
    with pytest.raises(UnavailableError, match=why):
        transport.json("GET", "/containers/json")


@pytest.mark.parametrize("answer", [cut, reset])
def test_what_came_of_a_stream_before_it_broke_is_given(served, answer) -> None:
    server, transport = served
    server.answer = answer
    came = b""
    with pytest.raises(UnavailableError, match=r"cut off|closed the connection"):
        for piece in transport.chunks("/events", {}, None):
            came += piece
    assert came == b'[{"Id": "'


def test_a_stream_that_is_closed_leaves_no_thread_no_connection_and_no_bytes(served) -> None:
    server, transport = served
    server.answer = flood
    before = threading.active_count() - server.open
    answers = [transport.begin("/containers/x/logs", {}) for _ in range(5)]
    flows = [FollowedLog(answer, tty=True) for answer in answers]
    eventually(lambda: all(flow.take() for flow in flows))
    time.sleep(0.2)  # some wait for room
    for flow in flows:
        flow.close()
        assert flow.ended
        assert len(flow.take()) <= 1  # the begin of a line
    eventually(lambda: server.open == 0)
    eventually(lambda: threading.active_count() <= before)


@pytest.mark.parametrize(
    "said", [b"[]", b"7", b'"x"', b"{}", b'{"Id": 7, "State": 3}', b'[{"Names": 3}]', b"null"]
)
def test_an_answer_of_another_form_is_no_crash(served, said) -> None:
    server, transport = served
    head = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    server.answer = lambda connection: connection.sendall(head % len(said) + said)
    engine = DockerEngine.__new__(DockerEngine)
    engine._transport, engine._limits = transport, DockerLimits(Changes(transport), 4, 1024)
    asked: list[Callable[[], object]] = [
        engine.containers,
        engine.ids,
        lambda: engine.inspect("x"),
        lambda: engine.usage("x"),
        lambda: engine.past_events(0.0, 1.0),
        lambda: list(engine.events(0.0)),
    ]
    for ask in asked:
        try:
            ask()
        except DltoolsError:
            continue
