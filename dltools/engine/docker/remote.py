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
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dltools.engine.address import Address
from dltools.engine.docker.addresses import SOCKET, check, configuration_folder, tcp_parts
from dltools.engine.docker.http import Dial, dial_socket
from dltools.engine.patience import TIMEOUT_S
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
    if is_asked and any(path.exists() for path in pair):
        made.load_cert_chain(*pair)
    return made


_CONNECT_S = 10
_OPTIONS = (
    "BatchMode=yes",
    "ExitOnForwardFailure=yes",
    "StreamLocalBindUnlink=yes",
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
        self._folder = tempfile.TemporaryDirectory(prefix="dltools-")
        self._socket = str(Path(self._folder.name, "docker.sock"))
        self._ssh: subprocess.Popen[bytes] | None = None

    def dial(self, timeout_s: float) -> socket.socket:
        """Connect to the engine; see `Dial`. Raises `UnavailableError` where there is no way."""
        with self._lock:
            if self._ssh is None or self._ssh.poll() is not None:
                self._ssh = self._opened()
        return dial_socket(self._socket)(timeout_s)

    def _opened(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        command = _command(self._url, self._socket)
        try:
            ssh = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except FileNotFoundError as error:
            raise UnavailableError(
                f"no Docker engine answers at {self._url}: the program ssh is missing; install it"
            ) from error
        atexit.register(ssh.kill)
        if why := _fault(ssh):
            host = urlsplit(self._url).netloc
            raise UnavailableError(
                f"no Docker engine answers at {self._url}: {why}; does `ssh {host}` work without a "
                "password?"
            )
        return ssh


def _fault(ssh: subprocess.Popen[bytes]) -> str:
    """Wait until a tunnel stands, and return ""; else end it, and return why it does not."""
    assert ssh.stdin is not None and ssh.stdout is not None and ssh.stderr is not None
    with suppress(BrokenPipeError):
        ssh.stdin.write(b"!\n")
        ssh.stdin.flush()
        if select.select([ssh.stdout], [], [], TIMEOUT_S)[0] and ssh.stdout.readline():
            return ""
    is_silent = ssh.poll() is None and not select.select([ssh.stderr], [], [], 0.5)[0]
    ssh.kill()
    said = "no answer in time" if is_silent else ssh.stderr.read().decode(errors="replace")
    ssh.wait()
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else "ssh ended"


def _command(url: str, socket: str) -> list[str]:
    """Return the command that forwards a socket here to the engine's, and runs `cat` there."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.username:
        host = f"{parts.username}@{host}"
    options = [word for option in _OPTIONS for word in ("-o", option)]
    port = ["-p", str(parts.port)] if parts.port else []
    forward = f"{socket}:{parts.path.rstrip('/') or SOCKET}"
    return ["ssh", "-T", *options, *port, "-L", forward, "--", host, "cat"]
