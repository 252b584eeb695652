"""Cgroups that no engine has made, and jobs of Slurm: `cgroup:` and `slurm:`.

It stands alone because the two kinds do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable

from dltools.engine.address import Address
from dltools.engine.interface import Engine
from dltools.errors import ConfigError, UnavailableError

_WHAT = "write cgroup:/PATH[,/PATH], where a PATH is below the root of cgroups and may have *"


def check(address: Address) -> None:
    """Raise `ConfigError` if an address is not one of these."""
    rest = _rest(address)
    if address.scheme != "cgroup":
        if rest:
            raise ConfigError(
                f"{address.said_by} {address.url!r}: nothing follows {address.scheme}:; to select "
                "containers, use --name or --label"
            )
        return
    for pattern in rest.split(","):
        parts = pattern.split("/")
        if not pattern.startswith("/") or not parts[-1] or {".", ".."} & set(parts):
            raise ConfigError(f"{address.said_by} {address.url!r}: no pattern of cgroups; {_WHAT}")


def open_engine(
    address: Address, patience_s: float, report_waiting: Callable[[UnavailableError], None]
) -> Engine:
    """Look at the cgroups, as `engine/registry.py` says. They are always there: nothing is waited
    for."""
    check(address)
    logs = address.settings.get("logs")
    if address.scheme == "slurm":
        from dltools.engine.cgroups.slurm import SlurmEngine

        return SlurmEngine(logs=logs)
    from dltools.engine.cgroups.cgroup_engine import CgroupEngine

    return CgroupEngine(_rest(address).split(","), logs=logs)


def _rest(address: Address) -> str:
    return address.url.partition(":")[2]
