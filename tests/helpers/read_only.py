"""A socket through which an engine can only be asked, as read-only socket proxies make it."""

import contextlib
import socket
import socketserver
import threading
from pathlib import Path
from typing import Self

_LARGEST_HEAD = 1 << 16
_REFUSAL = b'{"message":"only GET"}'
_ANSWER = (
    b"HTTP/1.0 403 Forbidden\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_REFUSAL), _REFUSAL)
)


class ReadOnlySocket:
    """Passes GET requests on to an engine's socket, and refuses all others. Any user may ask.

    `asked` are the methods that came.
    """

    def __init__(self, path: Path, engine: str = "/var/run/docker.sock") -> None:
        self.url = f"unix://{path}"
        self.engine = engine
        self.asked: list[str] = []
        self._path = path

    def __enter__(self) -> Self:
        self._server = _Server(str(self._path), _handler(self))
        self._path.chmod(0o666)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def _handler(proxy: ReadOnlySocket) -> type[socketserver.BaseRequestHandler]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _LARGEST_HEAD:
                more = self.request.recv(1 << 12)
                if not more:
                    return
                head += more
            method = head.split(b" ", 1)[0].decode("latin-1")
            proxy.asked.append(method)
            if method != "GET":
                self.request.sendall(_ANSWER)
                return
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as engine:
                engine.connect(proxy.engine)
                engine.sendall(head)
                while data := engine.recv(1 << 16):
                    self.request.sendall(data)

    return Handler
