"""Opening the engine at an address, whichever it is. All tools connect here.

It stands alone because it knows all members, and no member may know it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from dltools.engine.address import Address
from dltools.engine.interface import Engine
from dltools.errors import ConfigError, UnavailableError

_DOCKER_API = "dltools.engine.members.docker_api"
"""The module of addresses that have no known scheme, too."""

_CGROUPS = "dltools.engine.members.kernel_cgroups"

_MODULES = {
    "unix": _DOCKER_API,
    "tcp": _DOCKER_API,
    "http": _DOCKER_API,
    "https": _DOCKER_API,
    "ssh": _DOCKER_API,
    "cgroup": _CGROUPS,
    "slurm": _CGROUPS,
    "kubepods": _CGROUPS,
    "cri": "dltools.engine.cri.cri_engine",
    "kubernetes": "dltools.engine.kubernetes.kubernetes_engine",
}
"""The module, a `Member`, of each scheme of an address; it is imported when the scheme is used."""


class Member(Protocol):
    """What a module of the table has."""

    def check(self, address: Address) -> None:
        """Raise `ConfigError` if an address is not one of this member."""

    def open_engine(
        self,
        address: Address,
        patience_s: float,
        report_waiting: Callable[[UnavailableError], None],
    ) -> Engine:
        """Connect, as `open_engine` of this file does."""


def host_address(text: str) -> Address:
    """Return the address that --host gives. Raises `ConfigError`."""
    if not text:
        raise ConfigError("--host is empty; write unix:///PATH, tcp://HOST:PORT or ssh://HOST")
    found = Address(text, "--host", name=text)
    _member(found).check(found)
    return found


def open_engine(
    address: Address,
    *,
    patience_s: float = 0.0,
    report_waiting: Callable[[UnavailableError], None] = lambda _: None,
) -> Engine:
    """Connect to the engine at an address. If it goes away later, wait for it for so long;
    `report_waiting` is told the reason, once for each time.

    Raises `UnavailableError`, `AccessError`, or `ConfigError` if the address is not one of an
    engine.
    """
    return _member(address).open_engine(address, patience_s, report_waiting)


def _member(address: Address) -> Member:
    return cast(Member, import_module(_MODULES.get(address.scheme, _DOCKER_API)))
