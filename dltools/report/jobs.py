"""The jobs of a recording: which containers are one job, and what it was to reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dltools.labels import METRIC
from dltools.observations import metric_names
from dltools.observations.containers import ContainerRecord, Series, main_metric
from dltools.plan.signals.targets import Targets, parse


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """One job: its containers in order of time, more than one where it has migrated, its targets,
    and its progress points by metric."""

    name: str
    containers: tuple[ContainerRecord, ...]
    targets: Targets
    series: dict[str, Series]

    @property
    def last(self) -> ContainerRecord:
        """Its last container."""
        return self.containers[-1]

    @property
    def metric(self) -> str:
        """The metric to judge it by, "" where it reported none."""
        wanted = self.containers[0].labels.get(METRIC)
        return self.targets.metric or main_metric(self.series, wanted)

    @property
    def latencies(self) -> Series:
        """Its response times (s), [] where it reported none."""
        names = metric_names.latencies(self.series)
        return self.series[names[0]] if names else []


def observed_jobs(containers: Iterable[ContainerRecord]) -> list[ObservedJob]:
    """Return the jobs by their first appearance.

    Containers of one name on different hosts, one after the other, are one job. Others of the same
    name are told apart by a number.
    """
    found: dict[str, list[ContainerRecord]] = {}
    for one in sorted(containers, key=lambda one: (one.first_seen, one.host, one.id)):
        title, number = one.name, 2
        while title in found and not _goes_on(found[title][-1], one):
            title, number = f"{one.name} ({number})", number + 1
        found.setdefault(title, []).append(one)
    return [_job(title, parts) for title, parts in found.items()]


def _goes_on(before: ContainerRecord, after: ContainerRecord) -> bool:
    """Tell whether one container may be another's job on a new host."""
    return before.host != after.host and before.last_seen <= after.first_seen


def _job(name: str, parts: list[ContainerRecord]) -> ObservedJob:
    series: dict[str, Series] = {}
    for part in parts:
        for metric, points in part.series.items():
            series.setdefault(metric, []).extend(points)
    for points in series.values():
        points.sort(key=lambda point: point.time)
    return ObservedJob(name, tuple(parts), parse(parts[0].labels), series)
