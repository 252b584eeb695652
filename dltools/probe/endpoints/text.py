"""Prometheus text as numbers: cumulative series by labels, and the buckets of histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

Labels = frozenset[tuple[str, str]]

_OWN = "/metrics"
"""Exporters that count requests by path also count the scrapes."""


@dataclass(slots=True)
class Scrape:
    """One scrape. `series` maps a sample's name to its values by labels, `values` to their sum;
    `buckets` a histogram's name to its cumulative counts by labels (less `le`), by upper bound."""

    values: dict[str, float] = field(default_factory=dict)
    series: dict[str, dict[Labels, float]] = field(default_factory=dict)
    buckets: dict[str, dict[Labels, dict[float, float]]] = field(default_factory=dict)


def parse(text: str) -> Scrape:
    """Return the series of a text; lines that are no metrics are left out."""
    scrape = Scrape()
    for name, labels, value in _samples(text):
        if not math.isfinite(value) or _OWN in labels.values():
            continue  # NaN is an empty summary's quantile
        bound = labels.get("le")
        if name.endswith("_bucket") and bound is not None:
            try:
                upper = float(bound)
            except ValueError:
                continue
            if math.isnan(upper):
                continue
            of_name = scrape.buckets.setdefault(name.removesuffix("_bucket"), {})
            key = frozenset((label, text) for label, text in labels.items() if label != "le")
            of_name.setdefault(key, {})[upper] = value
        elif "quantile" not in labels:
            scrape.values[name] = scrape.values.get(name, 0.0) + value
            scrape.series.setdefault(name, {})[frozenset(labels.items())] = value
    return scrape


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#")) + "\n"
    try:  # without the TYPE lines, which would change names
        found = [s for family in text_string_to_metric_families(plain) for s in family.samples]
    except Exception:
        found = []
        for line in plain.splitlines():
            try:
                families = list(text_string_to_metric_families(line + "\n"))
            except Exception:
                continue
            found += [s for family in families for s in family.samples]
    for sample in found:
        try:
            yield sample.name, sample.labels, float(sample.value)
        except OverflowError:  # a whole number of hundreds of digits
            continue


def change(before: Scrape, after: Scrape, name: str) -> float | None:
    """Return by how much a name's series rose, summed over labels. A new series counts from 0, a
    series that has gone does not count. None if the name is missing or a series fell."""
    series = after.series.get(name)
    if series is None:
        return None
    old = before.series.get(name, {})
    rises = [value - old.get(labels, 0.0) for labels, value in series.items()]
    return None if min(rises) < 0 else sum(rises)


def bucket_changes(before: Scrape, after: Scrape, name: str) -> dict[float, float]:
    """Return by how much a histogram's cumulative counts rose, by upper bound."""
    old, found = before.buckets.get(name, {}), dict[float, float]()
    for labels, counts in after.buckets.get(name, {}).items():
        of_labels = old.get(labels, {})
        for bound, count in counts.items():
            found[bound] = found.get(bound, 0.0) + count - of_labels.get(bound, 0.0)
    return found


def quantile(share: float, rises: dict[float, float]) -> float | None:
    """Return the quantile of what a histogram counted, from its cumulative counts by upper bound.

    It is computed as histogram_quantile of Prometheus does: linear within a bucket, the last finite
    bound beyond it. None if nothing was counted, or without a bucket to infinity.
    """
    bounds = sorted(rises)
    counts = [rises[bound] for bound in bounds]
    if not counts or counts[-1] <= 0 or bounds[-1] != math.inf:
        return None
    rank = share * counts[-1]
    for number, (bound, count) in enumerate(zip(bounds, counts, strict=True)):
        if count < rank:
            continue
        below, lower = (counts[number - 1], bounds[number - 1]) if number else (0.0, 0.0)
        if math.isinf(bound):
            return lower if number else None
        if not number and bound <= 0:
            return bound
        return (
            lower + (bound - lower) * (rank - below) / (count - below) if count > below else bound
        )
    return None
