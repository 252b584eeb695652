"""Engines that speak Docker's API: Docker, and Podman, which tells its name with each answer.

It stands alone because neither of the two members knows the other's name.
"""

from __future__ import annotations

from collections.abc import Callable

from dltools.engine.address import Address
from dltools.engine.docker.addresses import check
from dltools.engine.interface import Engine
from dltools.errors import UnavailableError

__all__ = ["check", "open_engine"]


def open_engine(
    address: Address, patience_s: float, report_waiting: Callable[[UnavailableError], None]
) -> Engine:
    """Connect to Docker or Podman, as `members/opening.py` says."""
    from dltools.engine.docker.engine import DockerEngine, connect
    from dltools.engine.docker.transport import Patient

    transport = connect(address)
    if patience_s > 0:
        transport = Patient(transport, patience_s, report_waiting)
    if transport.server.startswith("Libpod/"):
        from dltools.engine.podman.engine import PodmanEngine

        return PodmanEngine(transport)
    return DockerEngine(transport)
