"""Which engine is behind an address: one of dltools, or a plug-in of the entry-point group
dltools.engines. All tools connect here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from dltools.engine.address import Address
from dltools.engine.interface import Engine
from dltools.errors import ConfigError, UnavailableError

GROUP = "dltools.engines"

_DOCKER = "dltools.engine.podman.engine"
"""The module of addresses that have no known scheme, too: it tells Podman from Docker."""

_MODULES = {
    "unix": _DOCKER,
    "tcp": _DOCKER,
    "http": _DOCKER,
    "https": _DOCKER,
    "ssh": _DOCKER,
    "cgroup": "dltools.engine.cgroups.cgroup_engine",
    "slurm": "dltools.engine.cgroups.slurm",
    "cri": "dltools.engine.cri.cri_engine",
}
"""The module of each scheme of an address; it is imported when the scheme is used."""


class EngineModule(Protocol):
    """What a module of the table above has, and what an entry point names."""

    def check(self, address: Address) -> None:
        """Raise `ConfigError` if an address is not one of this engine."""

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
    address = Address(text, "--host", name=text)
    _module(address).check(address)
    return address


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
    return _module(address).open_engine(address, patience_s, report_waiting)


def _module(address: Address) -> EngineModule:
    """Return the module of an address. Raises `ConfigError` for a plug-in that does not load."""
    scheme = address.scheme
    module = _MODULES.get(scheme) if scheme else _DOCKER
    if module is None and scheme in os.environ.get("DLTOOLS_PLUGINS", scheme).split(","):
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP, name=scheme):
            try:
                return cast(EngineModule, entry.load())
            except (Exception, SystemExit) as error:
                why = f"{type(error).__name__}: {error}"
                raise ConfigError(f"plug-in {entry.value} does not load: {why}") from error
    return cast(EngineModule, import_module(module or _DOCKER))
