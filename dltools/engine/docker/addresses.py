"""Addresses of Docker engines: those that the docker command would use, and those asked for."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from dltools.engine.address import Address
from dltools.errors import ConfigError, UnavailableError
from dltools.whole_files import home_directory

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
    if url.startswith("ssh://"):
        is_address = not (urlsplit(url).hostname or "-").startswith("-")
    else:
        is_address = tcp_parts(url) is not None
    if not is_address:
        raise ConfigError(
            f"{address.said_by} {url!r}: no address of a Docker engine; write unix:///PATH, "
            "tcp://HOST:PORT or ssh://HOST"
        )


def tcp_parts(url: str) -> SplitResult | None:
    """Return the scheme (https: by TLS), host and port of an address by TCP, as the package docker
    reads it; None for any other."""
    from docker.errors import DockerException
    from docker.utils import parse_host

    try:
        parts = urlsplit(parse_host(url if "://" in url else f"tcp://{url}"))
    except (DockerException, ValueError):
        return None
    return parts if parts.scheme in ("http", "https") and parts.path in ("", "/") else None


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
    folder = configuration_folder() / "contexts"
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
    certificates = folder / "tls" / digest / "docker"
    settings = {
        "is_tls": any(certificates.glob("*.pem")),
        "folder": certificates,
        "is_checked": is_checked,
    }
    return Address(url, f"docker context {name}", settings, name)


def _context_name() -> str:
    """Return the docker command's current context, "" for the default one."""
    name = os.environ.get("DOCKER_CONTEXT")
    with suppress(OSError, ValueError, AttributeError):
        configuration = json.loads((configuration_folder() / "config.json").read_text())
        name = name or str(configuration.get("currentContext") or "")
    return "" if name in (None, "default") else name


def configuration_folder() -> Path:
    """Return the folder of the docker command's configuration; without a home there is none."""
    home = home_directory() or Path("/nonexistent")
    return Path(os.environ.get("DOCKER_CONFIG") or home / ".docker")
