"""Addresses of Docker engines: those that the docker command would use, and those asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dltools.engine.address import Address
from dltools.errors import ConfigError, UnavailableError
from dltools.files import home_directory

SOCKET = "/var/run/docker.sock"


def socket_of(address: Address) -> str | None:
    """Return the path of a local socket, None for an engine elsewhere."""
    if not address.url or address.url.startswith("unix://"):
        return address.url.removeprefix("unix://") or SOCKET
    return None


def check(address: Address) -> None:
    """Raise `ConfigError` if an address is none of an engine that speaks Docker's API."""
    if socket_of(address) is not None:
        return
    url = address.url
    try:
        parts = urlsplit(url if "://" in url else f"tcp://{url}")
        has_port = parts.port is not None
    except ValueError:
        parts, has_port = urlsplit(""), False
    is_ssh = parts.scheme == "ssh" and not (parts.hostname or "-").startswith("-")
    is_tcp = parts.scheme in ("tcp", "http", "https") and parts.hostname and has_port
    if not is_ssh and not is_tcp:
        raise ConfigError(
            f"{address.said_by} {url!r}: no address of a Docker engine; write unix:///PATH, "
            "tcp://HOST:PORT or ssh://HOST"
        )


def default_address() -> Address:
    """Return the address that the docker command would use: DOCKER_HOST, else the context that
    DOCKER_CONTEXT or the configuration of docker names. Raises `UnavailableError`."""
    if where := os.environ.get("DOCKER_HOST"):
        return Address(where, "DOCKER_HOST", name=where)
    name = _context_name()
    return context_address(name) if name else Address("", "DOCKER_HOST", name="local")


def context_address(name: str) -> Address:
    """Return the address of a context of the docker command. Raises `UnavailableError`."""
    if name == "default":
        return Address("", "docker context default", name=name)
    folder = _folder() / "contexts"
    digest = hashlib.sha256(name.encode()).hexdigest()
    try:
        described = json.loads((folder / "meta" / digest / "meta.json").read_bytes())
        endpoint = described["Endpoints"]["docker"]
        url, is_checked = str(endpoint["Host"]), not endpoint.get("SkipTLSVerify")
    except FileNotFoundError:
        raise UnavailableError(
            f"docker context {name!r} does not exist; see docker context ls"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnavailableError(
            f"docker context {name!r} cannot be read: {type(error).__name__}: {error}"
        ) from error
    files = folder / "tls" / digest / "docker"
    tls = Tls(files, is_checked) if any(files.glob("*.pem")) else None
    return Address(url, f"docker context {name}", {"tls": tls}, name)


class Tls(NamedTuple):
    """The folder of a client's certificates, and whether the engine's is checked."""

    folder: Path
    is_checked: bool


def tls_of(address: Address) -> Tls | None:
    """Return what makes the connection to an engine one of TLS: what its context says, else the
    environment; None for plain TCP."""
    if address.scheme == "http":
        return None
    found: Tls | None = address.settings.get("tls")
    given, checks = os.environ.get("DOCKER_CERT_PATH"), os.environ.get("DOCKER_TLS_VERIFY")
    if not address.settings and (given or checks):
        found = Tls(Path(given) if given else _folder(), is_checked=bool(checks))
    return found or (Tls(_folder(), is_checked=True) if address.scheme == "https" else None)


def _context_name() -> str:
    """Return the docker command's current context, "" for the default one."""
    name = os.environ.get("DOCKER_CONTEXT") or ""
    name = name or str(configuration().get("currentContext") or "")
    return "" if name == "default" else name


def configuration() -> Mapping[str, Any]:
    """Return what the configuration of the docker command says, {} where it cannot be read."""
    try:
        found = json.loads((_folder() / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _folder() -> Path:
    """Return the folder of the docker command's configuration; without a home there is none."""
    home = home_directory() or Path("/nonexistent")
    return Path(os.environ.get("DOCKER_CONFIG") or home / ".docker")
