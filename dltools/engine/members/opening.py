"""Opening the engine at an address, whichever it is. All tools connect here.

It stands alone because it knows all members, and no member may know it.
"""

from __future__ import annotations

from collections.abc import Callable

from dltools.engine.docker.addresses import Address
from dltools.engine.interface import Engine
from dltools.errors import UnavailableError


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
    from dltools.engine.docker.engine import DockerEngine, connect
    from dltools.engine.docker.transport import Patient

    transport = connect(address)
    if patience_s > 0:
        return DockerEngine(Patient(transport, patience_s, report_waiting))
    return DockerEngine(transport)
