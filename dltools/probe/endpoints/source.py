"""One serving container's endpoint: found, scraped, and turned into windows of response times."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from datetime import UTC, datetime

from dltools.probe.endpoints.fetch import fetch
from dltools.probe.endpoints.text import Scrape, parse
from dltools.probe.endpoints.where import endpoint_urls
from dltools.probe.endpoints.window import window
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint

_RETRY_S = 60.0


class EndpointSource(ProgressSource):
    """Points over the time between two readings: mean, median and 99th percentile of the response
    time, requests and tokens a second, and the queue's length now."""

    needs_two_readings = True

    def __init__(self, candidates: Sequence[str], *, wanted: bool) -> None:
        """`candidates` are the URLs to try, see `where`; if a label named them they are `wanted`,
        and their failure is a `gap`."""
        self._wanted = wanted
        self._begin(candidates)

    def _begin(self, candidates: Sequence[str]) -> None:
        self._candidates = list(candidates)
        self._url: str | None = None
        self._tried = float("-inf")
        self._before: tuple[float, Scrape] | None = None
        self.gap = None

    @property
    def may_wait(self) -> bool:
        """Whether there is an address to ask."""
        return bool(self._candidates)

    def read(self, now: float, since: float = 0.0) -> list[TimedPoint]:
        """Scrape once, and return the points over the time since the scrape before."""
        del since
        scrape = self._scrape(now)
        if scrape is None:
            return []
        before, self._before = self._before, (now, scrape)
        if before is None or now <= before[0]:
            return []
        at = datetime.now(UTC)
        return [TimedPoint(at, point) for point in window(before[1], scrape, now - before[0])]

    def stop(self) -> list[TimedPoint]:
        """Ask no more: another container may get the address."""
        self._begin(())
        return []

    def restart(self, target: Target) -> None:
        """Begin again: the server counts from zero, maybe at another address."""
        self._begin(endpoint_urls(target))

    def _scrape(self, now: float) -> Scrape | None:
        if self._url is None:
            if now - self._tried < _RETRY_S:
                return None
            self._tried = now
        for url in [self._url] if self._url else self._candidates:
            try:
                text = fetch(url)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if self._wanted or self._url is not None:
                    self.gap = f"endpoint {url}: {str(error)[:60] or type(error).__name__}"
                self._url, self._before = None, None
                continue
            scrape = parse(text)
            if scrape.values or scrape.buckets:
                self._url, self.gap = url, None
                return scrape
            if self._wanted:
                self.gap = f"endpoint {url}: no metrics there"
        return None
