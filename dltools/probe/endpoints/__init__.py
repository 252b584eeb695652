"""Response times of serving containers, from their Prometheus endpoints."""

from dltools.probe.endpoints.source import EndpointSource

__all__ = ["EndpointSource"]
