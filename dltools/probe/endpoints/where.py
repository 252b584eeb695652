"""Where a container may serve Prometheus metrics; asked when it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from dltools.labels import ENDPOINT
from dltools.probe.progress.source import Target

PATHS: dict[int, tuple[str, ...]] = {
    8002: ("/metrics",),  # Triton
    8082: ("/metrics",),  # TorchServe
    8000: ("/metrics",),  # vLLM, SGLang
    8080: ("/metrics",),  # llama.cpp, TGI
    80: ("/metrics",),  # TGI
    3000: ("/metrics",),  # BentoML, TGI, TGIS
    8501: ("/monitoring/prometheus/metrics",),  # TensorFlow Serving
    9090: ("/metrics",),
}
"""The ports to try if a container exposes them, and the paths there."""


def endpoint_urls(target: Target) -> list[str]:
    """Return the URLs where a container may serve metrics. None of an engine on another machine:
    the addresses of its containers mean other machines here."""
    if not target.engine.is_local:
        return []
    container = target.container
    return list(candidates(container.raw, container.labels.get(ENDPOINT)))


def candidates(raw: Mapping[str, Any], label: str | None) -> Iterator[str]:
    """Yield the URLs where an inspected container may serve metrics, the likeliest first; none if
    the label makes no sense."""
    if label and "//" in label:
        if _is_http(label.strip()):
            yield label.strip()
        return
    addresses, published = _addresses(raw), _published(raw)
    for port, paths in (_asked(label.strip()) if label else _exposed(raw)).items():
        for path in paths:
            for address in addresses:
                yield f"http://{address}:{port}{path}"
            if port in published:
                yield f"http://{published[port]}{path}"


def _addresses(raw: Mapping[str, Any]) -> list[str]:
    """Return the addresses of a container."""
    if (raw.get("HostConfig") or {}).get("NetworkMode") == "host":
        return ["127.0.0.1"]
    networks = ((raw.get("NetworkSettings") or {}).get("Networks") or {}).values()
    return [str(net["IPAddress"]) for net in networks if net and net.get("IPAddress")]


def _published(raw: Mapping[str, Any]) -> dict[int, str]:
    """Return the addresses of a container's published ports on this host."""
    ports = (raw.get("NetworkSettings") or {}).get("Ports") or {}
    return {
        int(port.removesuffix("/tcp")): _host_end(bound[0])
        for port, bound in ports.items()
        if port.endswith("/tcp") and bound and bound[0].get("HostPort")
    }


def _asked(label: str) -> dict[int, tuple[str, ...]]:
    """Return the port and the path that a label such as 9000/metrics names."""
    number, slash, path = label.partition("/")
    if number.isascii() and number.isdigit() and 0 < int(number[:6]) < 1 << 16:
        return {int(number): (f"{slash}{path}" or "/metrics",)}
    return {}


def _exposed(raw: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    """Return the known ports that a container exposes, and the paths there."""
    exposed = (raw.get("Config") or {}).get("ExposedPorts") or {}
    ports = {int(port.partition("/")[0]) for port in exposed if port.endswith("/tcp")}
    return {port: PATHS[port] for port in PATHS if port in ports}


def _host_end(bound: Mapping[str, str]) -> str:
    """Return the address of a published port: 127.0.0.1 only if it is bound to all addresses, since
    another container's may be bound there."""
    host = bound.get("HostIp") or "0.0.0.0"
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"[{host}]:{bound['HostPort']}" if ":" in host else f"{host}:{bound['HostPort']}"


def _is_http(url: str) -> bool:
    try:
        return urlsplit(url).scheme == "http"
    except ValueError:
        return False
