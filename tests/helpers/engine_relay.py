"""An engine's socket behind another one, which can tell, swallow and refuse what is asked."""

import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

_LARGEST_HEAD = 1 << 16
_MESSAGE = b'{"message":"only GET"}'
_REFUSAL = (
    b"HTTP/1.0 403 Forbidden\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_MESSAGE), _MESSAGE)
)


class EngineRelay:
    """Passes requests on to an engine, by a socket at a path, which any user may use, or by a TCP
    port.

    `changes` are the requests that could change something, in order: method and path. They are
    refused where the engine `is_asked_only`, as by read-only socket proxies; the answer to one of
    which `swallows` tells so gets lost.
    """

    def __init__(
        self, engine: str, path: Path | None = None, *, is_asked_only: bool = False
    ) -> None:
        self.engine, self.is_asked_only = engine, is_asked_only
        self.changes: list[str] = []
        self.swallows: Callable[[str], bool] = lambda _: False
        self._server: socketserver.BaseServer
        if path is None:
            self._server = _TcpServer(("127.0.0.1", 0), _handler(self))
            self.url = f"tcp://127.0.0.1:{self._server.server_address[1]}"
        else:
            self._server = _UnixServer(str(path), _handler(self))
            self.url = f"unix://{path}"
            path.chmod(0o666)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


def _handler(relay: EngineRelay) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = _head(self.request)
            method, path = [*head.decode("latin-1").split(" ", 2), "", ""][:2]
            change = f"{method} {path}" if head and method != "GET" else ""
            if change:
                relay.changes.append(change)
                if relay.is_asked_only:
                    self.request.sendall(_REFUSAL)
                    return
            with suppress(OSError), socket.socket(socket.AF_UNIX) as engine:
                engine.connect(relay.engine)
                engine.sendall(head)
                if not relay.is_asked_only:  # what follows the head of a GET is not looked at
                    threading.Thread(target=_pump, args=(self.request, engine), daemon=True).start()
                if change and relay.swallows(change):
                    while engine.recv(1 << 16):
                        pass
                else:
                    _pump(engine, self.request)

    return Handler


def _head(client: socket.socket) -> bytes:
    """Return what comes until the end of a request's head, or of the connection."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _LARGEST_HEAD:
        more = client.recv(1 << 16)
        if not more:
            break
        head += more
    return head


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
