"""Addresses of Docker engines: those that the docker command would use, and those asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dltools.errors import ConfigError, UnavailableError

SOCKET = "/var/run/docker.sock"


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine is: a URL, and the option or variable that says so.

    `settings` are docker-py's, with the certificates of a context; {}: those of the environment.
    `name` is what to call the host until its engine says.
    """

    url: str
    said_by: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def socket(self) -> str | None:
        """The path of a local socket, None for an engine elsewhere."""
        if not self.url or self.url.startswith("unix://"):
            return self.url.removeprefix("unix://") or SOCKET
        return None

    @property
    def is_ssh(self) -> bool:
        """Whether the engine is reached over SSH."""
        return self.url.startswith("ssh://")

    def check(self) -> None:
        """Raise `ConfigError` if this is no address of an engine."""
        if self.socket is not None:
            return
        try:
            parts = urlsplit(self.url if "://" in self.url else f"tcp://{self.url}")
            has_port = parts.port is not None
        except ValueError:
            parts, has_port = urlsplit(""), False
        is_ssh = parts.scheme == "ssh" and not (parts.hostname or "-").startswith("-")
        is_tcp = parts.scheme in ("tcp", "http", "https") and parts.hostname and has_port
        if not is_ssh and not is_tcp:
            raise ConfigError(
                f"{self.said_by} {self.url!r}: no address of a Docker engine; write unix:///PATH, "
                "tcp://HOST:PORT or ssh://HOST"
            )


def default_address() -> Address:
    """Return the address that the docker command would use: DOCKER_HOST, else the context that
    DOCKER_CONTEXT or the configuration of docker names. Raises `UnavailableError`."""
    if where := os.environ.get("DOCKER_HOST"):
        return Address(where, "DOCKER_HOST", name=where)
    name = _context_name()
    return context_address(name) if name else Address("", "DOCKER_HOST", name="local")


def host_address(text: str) -> Address:
    """Return the address that --host gives. Raises `ConfigError`."""
    if not text:
        raise ConfigError("--host is empty; write unix:///PATH, tcp://HOST:PORT or ssh://HOST")
    found = Address(text, "--host", name=text)
    found.check()
    return found


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
    settings = {"base_url": url, **_tls(folder / "tls" / digest / "docker", is_checked=is_checked)}
    return Address(url, f"docker context {name}", settings, name)


def _tls(folder: Path, *, is_checked: bool) -> dict[str, Any]:
    """Return docker-py's setting for the certificates of a context, {} where it has none."""
    files = {
        name: str(folder / f"{name}.pem")
        for name in ("ca", "cert", "key")
        if (folder / f"{name}.pem").exists()
    }
    if not files:
        return {}
    from docker.tls import TLSConfig

    pair = (files["cert"], files["key"]) if "cert" in files and "key" in files else None
    return {"tls": TLSConfig(client_cert=pair, ca_cert=files.get("ca"), verify=is_checked)}


def _context_name() -> str:
    """Return the docker command's current context, "" for the default one."""
    name = os.environ.get("DOCKER_CONTEXT") or ""
    if not name:
        try:
            name = str(json.loads((_folder() / "config.json").read_text())["currentContext"])
        except (OSError, ValueError, KeyError, TypeError):
            name = ""
    return "" if name == "default" else name


def _folder() -> Path:
    """Return the folder of the docker command's configuration."""
    return Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
