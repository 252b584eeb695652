"""The way to the Docker engine, found as the docker command finds it.

DOCKER_HOST (with DOCKER_TLS_VERIFY and DOCKER_CERT_PATH), else the context of DOCKER_CONTEXT or of
the docker configuration.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dltools.errors import UnavailableError
from dltools.probe.local import Local
from dltools.probe.transport import Transport

_SOCKET = "/var/run/docker.sock"


def connect() -> Transport:
    """Return the way to the engine. Raises `UnavailableError` or `AccessError`."""
    where = os.environ.get("DOCKER_HOST") or ""
    settings: dict[str, Any] = {}
    if not where and (name := _context_name()):
        settings = _context(name)
        where = settings.get("base_url") or ""
    if not where or where.startswith("unix://"):
        return Local(where.removeprefix("unix://") or _SOCKET)
    from dltools.probe.remote import Remote

    return Remote(where, settings)


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
