"""Finds the URLs where a container may serve Prometheus metrics, when the container starts."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from dltools.engine.interface import Network
from dltools.labels import ENDPOINT
from dltools.probe.progress.source import Target

PATHS = {
    8002: "/metrics",  # Triton
    8082: "/metrics",  # TorchServe
    8000: "/metrics",  # vLLM, SGLang
    8080: "/metrics",  # llama.cpp, TGI
    80: "/metrics",  # TGI
    3000: "/metrics",  # BentoML, TGI, TGIS
    8501: "/monitoring/prometheus/metrics",  # TensorFlow Serving
    9090: "/metrics",
}
"""The ports to try if a container exposes them, and the path there."""


def endpoint_urls(target: Target) -> list[str]:
    """Return the URLs where a container may serve metrics. There are none for an engine on another
    machine, because the addresses of its containers mean something else here."""
    if not target.engine.is_local:
        return []
    container = target.container
    return list(candidates(container.network, container.labels.get(ENDPOINT)))


def candidates(network: Network, label: str | None) -> Iterator[str]:
    """Yield the URLs where a container may serve metrics, the likeliest first; none if the label
    makes no sense."""
    if label and "//" in label:
        if _is_http(label.strip()):
            yield label.strip()
        return
    exposed = {port: PATHS[port] for port in PATHS if port in network.exposed}
    for port, path in (_asked(label.strip()) if label else exposed).items():
        for address in network.addresses:
            yield f"http://{address}:{port}{path}"
        if port in network.published:
            yield f"http://{network.published[port]}{path}"


def _asked(label: str) -> dict[int, str]:
    """Return the port and the path that a label such as 9000/metrics names."""
    number, slash, path = label.partition("/")
    if number.isascii() and number.isdigit() and 0 < int(number[:6]) < 1 << 16:
        return {int(number): f"{slash}{path}" or "/metrics"}
    return {}


def _is_http(url: str) -> bool:
    try:
        return urlsplit(url).scheme == "http"
    except ValueError:
        return False
