"""Requests to a Docker engine on another machine, over SSH.

The user's own ssh forwards the engine's socket, so that its configuration, keys, agent and known
hosts count. It runs `cat` there: what comes back shows that the tunnel stands, and ssh ends with
this process, even with kill -9, because its input ends then.
"""

from __future__ import annotations

import atexit
import select
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dltools.engine.docker import transport
from dltools.engine.docker.addresses import SOCKET
from dltools.engine.docker.local import Answer, Local
from dltools.engine.docker.transport import Params
from dltools.errors import UnavailableError

_CONNECT_S = 10
_OPTIONS = (
    "BatchMode=yes",
    "ExitOnForwardFailure=yes",
    f"ConnectTimeout={_CONNECT_S}",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
)


class Tunnelled(Local):
    """Requests through a tunnel, which is opened again after it has broken."""

    def __init__(self, url: str) -> None:
        """Open the tunnel. Raises `UnavailableError`."""
        self._url = url
        self._lock = threading.Lock()
        self._tunnel = _Tunnel(url)
        super().__init__(self._tunnel.socket, url)

    def _ask(
        self, method: str, path: str, params: Params, body: Any = None, quiet_s: float = 0.0
    ) -> Answer:
        with self._lock:
            if not self._tunnel.stands:
                self._tunnel.close()
                self._tunnel = _Tunnel(self._url)
                self._path = self._tunnel.socket
        return super()._ask(method, path, params, body, quiet_s)


class _Tunnel:
    def __init__(self, url: str) -> None:
        self._url = url
        self._folder = tempfile.TemporaryDirectory(prefix="dltools-")
        self.socket = str(Path(self._folder.name, "docker.sock"))
        try:
            self._ssh = subprocess.Popen(
                _command(url, self.socket),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            self._folder.cleanup()
            raise UnavailableError(
                f"no Docker engine answers at {url}: the program ssh is missing; install it"
            ) from error
        atexit.register(self.close)
        self._wait_until_it_stands()

    @property
    def stands(self) -> bool:
        return self._ssh.poll() is None

    def close(self) -> None:
        atexit.unregister(self.close)
        self._ssh.kill()
        self._ssh.wait()
        self._folder.cleanup()

    def _wait_until_it_stands(self) -> None:
        stdin, stdout, stderr = self._ssh.stdin, self._ssh.stdout, self._ssh.stderr
        assert stdin is not None and stdout is not None and stderr is not None
        try:
            stdin.write(b"!\n")
            stdin.flush()
            if select.select([stdout], [], [], transport.TIMEOUT_S)[0] and stdout.readline():
                return
        except BrokenPipeError:
            pass
        said = b""
        if self._ssh.poll() is None and not select.select([stderr], [], [], 0.5)[0]:
            said = b"no answer in time"
        self._ssh.kill()
        lines = (said or stderr.read()).decode(errors="replace").splitlines()
        self.close()
        why = next((line for line in reversed(lines) if line.strip()), "ssh ended")
        host = urlsplit(self._url).netloc
        raise UnavailableError(
            f"no Docker engine answers at {self._url}: {why.strip()}; does `ssh {host}` work "
            "without a password?"
        )


def _command(url: str, socket: str) -> list[str]:
    """Return the command that forwards a socket here to the engine's, and runs `cat` there."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.username:
        host = f"{parts.username}@{host}"
    options = [word for one in _OPTIONS for word in ("-o", one)]
    port = ["-p", str(parts.port)] if parts.port else []
    forward = f"{socket}:{parts.path.rstrip('/') or SOCKET}"
    return ["ssh", "-T", *options, *port, "-L", forward, "--", host, "cat"]
