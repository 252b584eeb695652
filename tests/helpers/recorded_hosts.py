"""Hosts that are read from observations, sample by sample."""

from typing import Any

from helpers.observed_rows import at, container, job_id, node

from dltools.labels import parse_labels
from dltools.observations.samples_by_host import samples_by_host, table_chunks
from dltools.observations.table import Row, to_table
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.interface import Requirements
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.samples.recorded_host import RecordedHost
from dltools.plan.signals.container_history import ContainerHistory

A, B = job_id("a"), job_id("b")


def micros(seconds: float) -> int:
    return round((at(seconds).timestamp()) * 1e6)


def introduce(container: ContainerHistory, text: str | None) -> None:
    container.label(parse_labels(text))


def new(required: Requirements | None = None) -> RecordedHost:
    return RecordedHost(HostHistory("node"), requirements=required or Requirements())


def begin(host: RecordedHost, *rows: Row) -> RecordedHost:
    """Give a host the samples of a table."""
    (table,) = table_chunks(to_table(sorted(rows, key=lambda row: row["time"])))
    found = samples_by_host(table, {"node": host.history.sampled_at})
    host.begin(found["node"])
    return host


def read(host: RecordedHost, count: int) -> bool:
    """Read samples, record each, and set the queue as a round would; tell if a target was met."""
    met = False
    for _ in range(count):
        host.next_sample(introduce)
        met |= host.record()
        host.history.queue = Queue()
    return met


def sample(seconds: float, *names: str, **more: Any) -> list[Row]:
    return [node(seconds)] + [container(seconds, name, seconds / 2, **more) for name in names]


def losses(one: ContainerHistory) -> list[float]:
    return one.progress.metrics["loss"].values if "loss" in one.progress.metrics else []
