"""Which engine is behind an address: one of dltools, or a plug-in of the entry-point group
dltools.engines. All tools connect here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from dltools.engine.address import Address
from dltools.engine.interface import Engine
from dltools.errors import ConfigError, UnavailableError

GROUP = "dltools.engines"


class _Entry(NamedTuple):
    """What is known of an engine before its module is imported."""

    module: str
    """Its `EngineModule`."""

    cgroups: str = ""
    """A pattern of the cgroups that it keeps a record of: of changes to their files it would not
    know."""

    takes_log_files: bool = False
    """Whether it takes the files of --log."""


_OF_DOCKER = r"^/(docker|libpod_parent)(/|$)|/libpod-|[/-][0-9a-f]{64}(\.scope)?(/|$)"
_OF_SLURM = r"^/slurm(_[^/]*)?(/|$)|slurmstepd\.scope(/|$)"

_DOCKER = _Entry("dltools.engine.podman.engine", _OF_DOCKER)
"""That of addresses without a known scheme, too: it tells Podman from Docker."""

_ENGINES = {
    "unix": _DOCKER,
    "tcp": _DOCKER,
    "http": _DOCKER,
    "https": _DOCKER,
    "ssh": _DOCKER,
    "cgroup": _Entry("dltools.engine.cgroups.cgroup_engine", takes_log_files=True),
    "slurm": _Entry("dltools.engine.cgroups.slurm", _OF_SLURM, takes_log_files=True),
    "cri": _Entry("dltools.engine.cri.cri_engine", r"^/kubepods(\.slice)?(/|$)"),
}
"""By the scheme of an address."""

ON_RECORD = re.compile("|".join({entry.cgroups for entry in _ENGINES.values()} - {""}))
"""Matches the paths of cgroups that an engine keeps a record of."""


class EngineModule(Protocol):
    """What a module of the table above has, and an entry point names."""

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


def takes_log_files(url: str) -> bool:
    """Tell whether the engine at an address takes the files of --log."""
    known = _ENGINES.get(url.partition(":")[0])
    return known is not None and known.takes_log_files


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
    known = _ENGINES.get(scheme) if scheme else _DOCKER
    if known is None and scheme in os.environ.get("DLTOOLS_PLUGINS", scheme).split(","):
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP, name=scheme):
            try:
                return cast(EngineModule, entry.load())
            except (Exception, SystemExit) as error:
                why = f"{type(error).__name__}: {error}"
                raise ConfigError(f"plug-in {entry.value} does not load: {why}") from error
    return cast(EngineModule, import_module((known or _DOCKER).module))
