"""Ways to a Docker engine: a socket here, TCP or TLS to another machine; `tunnel` has ssh's."""

from __future__ import annotations

import socket
from functools import cache, partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dltools.engine.address import Address
from dltools.engine.docker.addresses import Tls, check, configuration, socket_of, tls_of
from dltools.engine.docker.transport import Way

if TYPE_CHECKING:
    import ssl


def way_to(address: Address) -> Way:
    """Return how the engine at an address is reached. Raises `ConfigError` if the address is not
    one of an engine, and `UnavailableError` where ssh opens no tunnel."""
    check(address)
    if (path := socket_of(address)) is not None:
        return Way(f"unix://{path}", partial(dial_socket, path), is_local=True)
    if address.scheme == "ssh":
        from dltools.engine.docker.tunnel import Tunnel

        return Way(address.url, Tunnel(address.url).dial)
    parts = urlsplit(address.url if "://" in address.url else f"tcp://{address.url}")
    given = {"Host": parts.netloc, **configuration().get("HttpHeaders", {})}
    headers = "".join(f"{name}: {text}\r\n" for name, text in given.items())
    dial = partial(_dial_tcp, parts.hostname or "", parts.port or 0, tls_of(address))
    return Way(address.url, dial, headers=headers, base=parts.path.rstrip("/"))


def dial_socket(path: str, timeout_s: float) -> socket.socket:
    """Connect to a local socket. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _dial_tcp(host: str, port: int, tls: Tls | None, timeout_s: float) -> socket.socket:
    context = _context(tls) if tls else None
    connection = socket.create_connection((host, port), timeout_s)
    return context.wrap_socket(connection, server_hostname=host) if context else connection


@cache
def _context(tls: Tls) -> ssl.SSLContext:
    """Return what a client's certificates make of a connection. Raises OSError."""
    import ssl

    ca, certificate, key = (tls.folder / f"{name}.pem" for name in ("ca", "cert", "key"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not tls.is_checked:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif ca.exists():
        context.load_verify_locations(ca)
    else:
        context.load_default_certs()
    if certificate.exists() and key.exists():
        context.load_cert_chain(certificate, key)
    return context
