"""Connections to Docker engines on other machines: TCP, TLS, and tunnels by SSH.

For a tunnel the user's own ssh forwards the engine's socket, so that its configuration, keys, agent
and known hosts count. It runs `cat` there: what comes back shows that the tunnel stands, and ssh
ends with this process, even with kill -9, because its input ends then.
"""

from __future__ import annotations

import atexit
import os
import select
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dltools.engine.address import Address
from dltools.engine.docker import transport
from dltools.engine.docker.addresses import SOCKET, check, configuration_folder, tcp_parts
from dltools.engine.docker.transport import Dial, dial_socket
from dltools.errors import ConfigError, UnavailableError


def dial_tcp(address: Address) -> Dial:
    """Return how to connect to an engine by TCP, or by TLS where its settings or the variables of
    the docker command ask for that. Raises `ConfigError` for certificates that cannot be read."""
    check(address)
    parts = tcp_parts(address.url) or urlsplit("")
    host, port = parts.hostname or "", parts.port or 0
    settings = address.settings or _settings_of_environment()
    try:
        tls = _tls(settings) if settings["is_tls"] or parts.scheme == "https" else None
    except OSError as error:
        raise ConfigError(
            f"{address.said_by} {address.url!r}: the certificates in {settings['folder']} cannot "
            f"be used: {error.strerror or error}"
        ) from error

    def dial(timeout_s: float) -> socket.socket:
        made = socket.create_connection((host, port), timeout_s)
        try:
            return tls.wrap_socket(made, server_hostname=host) if tls else made
        except BaseException:
            made.close()
            raise

    return dial


def _settings_of_environment() -> Mapping[str, Any]:
    """Return what the variables of the docker command say of TLS."""
    given = os.environ.get("DOCKER_CERT_PATH") or ""
    is_checked = bool(os.environ.get("DOCKER_TLS_VERIFY"))
    folder = Path(given) if given else configuration_folder()
    return {"is_tls": bool(given) or is_checked, "folder": folder, "is_checked": is_checked}


def _tls(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Return how to speak TLS: with the certificates of a folder, as far as they are there. Raises
    OSError."""
    authority, *pair = (settings["folder"] / f"{name}.pem" for name in ("ca", "cert", "key"))
    is_asked = settings["is_tls"]
    made = ssl.create_default_context(cafile=authority if is_asked and authority.exists() else None)
    if is_asked and not settings["is_checked"]:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if is_asked and any(one.exists() for one in pair):
        made.load_cert_chain(*pair)
    return made


_CONNECT_S = 10
_OPTIONS = (
    "BatchMode=yes",
    "ExitOnForwardFailure=yes",
    f"ConnectTimeout={_CONNECT_S}",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
)


class Tunnel:
    """A tunnel to an engine, which is opened again after it has broken."""

    def __init__(self, url: str) -> None:
        """Open nothing yet."""
        self._url = url
        self._lock = threading.Lock()
        self._open: _OpenTunnel | None = None

    def dial(self, timeout_s: float) -> socket.socket:
        """Connect to the engine; see `Dial`. Raises `UnavailableError` where there is no way."""
        with self._lock:
            if self._open is not None and not self._open.stands:
                self._open.close()
                self._open = None
            if self._open is None:
                self._open = _OpenTunnel(self._url)
            path = self._open.socket
        return dial_socket(path)(timeout_s)


class _OpenTunnel:
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
