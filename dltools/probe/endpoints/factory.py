"""The source of a container's endpoint, if it may have one."""

from __future__ import annotations

from dltools.labels import ENDPOINT
from dltools.probe.endpoints.where import endpoint_urls
from dltools.probe.progress.source import ProgressSource, Target


def endpoint_source(target: Target) -> ProgressSource | None:
    """Return the source that scrapes a container's endpoint, None if there is no address to try."""
    urls = endpoint_urls(target)
    if not urls:
        return None
    from dltools.probe.endpoints.source import EndpointSource  # HTTP, which most hosts do not need

    return EndpointSource(urls, wanted=ENDPOINT in target.container.labels)
