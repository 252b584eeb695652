"""Connecting to the Docker engine that the docker command would use.

Its address comes from DOCKER_HOST (with DOCKER_TLS_VERIFY and DOCKER_CERT_PATH), else from the
context that DOCKER_CONTEXT or the configuration of docker names.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dltools.engine.local import Local
from dltools.engine.transport import Transport
from dltools.errors import ConfigError, UnavailableError

_SOCKET = "/var/run/docker.sock"


def connect() -> Transport:
    """Return a connection to the engine. Raises `UnavailableError`, `AccessError`, or `ConfigError`
    if the address is not one of an engine."""
    where, said_by = os.environ.get("DOCKER_HOST") or "", "DOCKER_HOST"
    settings: dict[str, Any] = {}
    if not where and (name := _context_name()):
        settings, said_by = _context(name), f"docker context {name}"
        where = settings.get("base_url") or ""
    if not where or where.startswith("unix://"):
        return Local(where.removeprefix("unix://") or _SOCKET)
    _check(where, said_by)
    from dltools.engine.remote import Remote

    return Remote(where, settings)


def _check(where: str, said_by: str) -> None:
    """Raise `ConfigError` if the address is not one of an engine, and `UnavailableError` if the
    package that SSH needs is missing."""
    try:
        parts = urlsplit(where if "://" in where else f"tcp://{where}")
        has_port = parts.port is not None
    except ValueError:
        parts, has_port = urlsplit(""), False
    if parts.scheme == "ssh" and parts.hostname:
        if find_spec("paramiko") is None:
            raise UnavailableError(
                f"{said_by} {where}: SSH needs paramiko (pip install paramiko); or forward the "
                f"socket: ssh -NL /tmp/docker.sock:{_SOCKET} {parts.netloc}, and set "
                "DOCKER_HOST=unix:///tmp/docker.sock"
            )
    elif parts.scheme not in ("tcp", "http", "https") or not parts.hostname or not has_port:
        raise ConfigError(
            f"{said_by} {where!r}: no address of a Docker engine; write unix:///PATH, "
            "tcp://HOST:PORT or ssh://HOST"
        )


def _context_name() -> str:
    """Return the docker command's current context, "" for the default one."""
    name = os.environ.get("DOCKER_CONTEXT") or ""
    if not name:
        folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
        try:
            name = str(json.loads(Path(folder, "config.json").read_text())["currentContext"])
        except (OSError, ValueError, KeyError, TypeError):
            name = ""
    return "" if name == "default" else name


def _context(name: str) -> dict[str, Any]:
    """Return the connection of a context of the docker command."""
    from docker.context import ContextAPI

    try:
        context = ContextAPI.get_context(name)
    except Exception as error:
        raise UnavailableError(f"docker context {name!r} cannot be read: {error}") from error
    if context is None:
        raise UnavailableError(f"docker context {name!r} does not exist; see docker context ls")
    tls = context.TLSConfig
    return {"base_url": context.Host, **({"tls": tls} if tls else {})}
