"""Prometheus text as numbers: each series' sum over its labels, histograms' buckets apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Scrape:
    """One scrape. `values` maps a sample's name to its sum over all labels; `buckets` a histogram's
    name to its cumulative counts by upper bound."""

    values: dict[str, float] = field(default_factory=dict)
    buckets: dict[str, dict[float, float]] = field(default_factory=dict)


def parse(text: str) -> Scrape:
    """Return what a text says; a line that is no metric is left out, with no harm to the others."""
    scrape = Scrape()
    for name, labels, value in _samples(text):
        if math.isnan(value):
            continue  # an empty summary's quantile
        bound = labels.get("le")
        if name.endswith("_bucket") and bound is not None:
            try:
                upper = float(bound)
            except ValueError:
                continue
            of_name = scrape.buckets.setdefault(name.removesuffix("_bucket"), {})
            of_name[upper] = of_name.get(upper, 0.0) + value
        elif "quantile" not in labels:
            scrape.values[name] = scrape.values.get(name, 0.0) + value
    return scrape


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#")) + "\n"
    try:  # without the TYPE lines, so that names stay as they stand
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
        yield sample.name, sample.labels, float(sample.value)


def quantile(share: float, before: dict[float, float], after: dict[float, float]) -> float | None:
    """Return the quantile of what a histogram counted between two scrapes, as histogram_quantile of
    Prometheus has it: linear within a bucket, the last finite bound beyond it, None for nothing."""
    bounds = sorted(after)
    counts = [after[b] - before.get(b, 0.0) for b in bounds]
    if not counts or counts[-1] <= 0:
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
