"""Response times of serving containers, from their Prometheus endpoints.

`inventory` asks for the source of each container. HTTP is imported for the first endpoint, because
most hosts need none.
"""

from __future__ import annotations

from dltools.labels import ENDPOINT
from dltools.probe.endpoints.where import endpoint_urls
from dltools.probe.progress.source import ProgressSource, Target


def endpoint_source(target: Target) -> ProgressSource | None:
    """Return the source that scrapes a container's endpoint, None if there is no address to try."""
    urls = endpoint_urls(target)
    if not urls:
        return None
    from dltools.probe.endpoints.scraper import EndpointSource

    return EndpointSource(urls, wanted=ENDPOINT in target.container.labels)
