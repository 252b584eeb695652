"""Connecting to a Docker engine: the one that the docker command would use, or another."""

from __future__ import annotations

from dltools.engine.addresses import Address, default_address
from dltools.engine.local import Local
from dltools.engine.transport import Transport


def connect(address: Address | None = None) -> Transport:
    """Return a connection to the engine at an address, by default to the one that the docker
    command would use.

    Raises `UnavailableError`, `AccessError`, or `ConfigError` if the address is not one of an
    engine.
    """
    address = address or default_address()
    address.check()
    if address.socket is not None:
        return Local(address.socket)
    if address.is_ssh:
        from dltools.engine.tunnel import Tunnelled

        return Tunnelled(address.url)
    from dltools.engine.remote import Remote

    return Remote(address.url, address.settings)
