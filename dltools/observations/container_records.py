"""The containers of a recording over time: their samples, their CPU use, their progress.

dl-report shows them, and dl-sim runs them again. Times are seconds since the epoch; NaN stands for
what is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from dltools import labels
from dltools.notation.limits import ASKED, IN_FORCE, Limits, limits_at, most_cpus
from dltools.notation.times import MICRO
from dltools.observations import judging_metric
from dltools.observations.gpu_energy import GpuEnergy, Joules, read_joules
from dltools.observations.host_samples import HostSamples, PointsByMetric
from dltools.observations.samples_by_host import SAMPLE_COLUMNS, samples_by_host, table_chunks
from dltools.observations.schema import SAMPLED, Kind
from dltools.observations.table import (
    concat,
    hosts_of,
    integers,
    is_one_of,
    optional_integers,
    texts,
)

if TYPE_CHECKING:
    import pyarrow as pa

PAUSED = "paused"

RECORD_COLUMNS = (*SAMPLE_COLUMNS, "event", "exit_code", "gpu_energy_joules")
"""The columns that are read of a recording."""


class SeriesPoint(NamedTuple):
    """A value and when it held."""

    time: float
    """Seconds since the epoch, or, in a timeline, since the run began."""

    value: float
    """What held then."""


Series = list[SeriesPoint]
"""Points in order of time."""


class ContainerSample(NamedTuple):
    """A container in one sample of its host."""

    time: float
    """When it was taken."""

    host_cpus: float
    """How many CPUs its host has, NaN where that is unknown."""

    state: str
    """In the engine's word, such as running or paused."""

    started: float
    """When its main process was last started."""

    cpu_seconds: float
    """Its counter of CPU seconds."""

    limits: Limits
    """Those in force, without what is unknown. No quota is one of all CPUs of its host."""

    turn_s: float
    """The length of its turn in seconds, NaN where it takes none."""

    turn_queue: str = ""
    """The GPU for which it takes turns, "" for CPUs."""

    @property
    def is_paused(self) -> bool:
        """Whether its processes are frozen."""
        return self.state == PAUSED

    @property
    def quota(self) -> float:
        """The quota in cores, NaN if unknown."""
        cpus = self.limits.get("cpus")
        return math.nan if cpus is None else cpus

    def allowed_cores(self) -> float:
        """Return the cores that state, quota and CPU list allow, NaN if unknown."""
        if self.is_paused:
            return 0.0
        return min(self.quota, most_cpus(self.limits))


@dataclass(frozen=True, slots=True)
class CpuUse:
    """The CPU seconds that a container used between two of its samples."""

    begin: ContainerSample
    """The sample before."""

    end: ContainerSample
    """The sample after."""

    seconds: float
    """The CPU seconds that it used in between."""

    @property
    def span_s(self) -> float:
        """Seconds between the samples."""
        return self.end.time - self.begin.time

    @property
    def cores(self) -> float:
        """Cores that it used in the mean, 0 where no time has passed."""
        return self.seconds / self.span_s if self.span_s > 0 else 0.0


@dataclass(slots=True)
class ContainerRecord:
    """One container of a recording."""

    host: str
    """The name of its host."""

    id: str
    """The engine's id."""

    name: str
    """Its newest name; the begin of its id where it has none."""

    first_seen: float
    """When it was first seen."""

    last_seen: float
    """When it was last seen."""

    is_sampled: bool = True
    """Whether there are samples of it: nothing but progress is known of a saved log."""

    started: float = math.nan
    """When its main process was last started; for a saved log the time of its first point."""

    labels: dict[str, str] = field(default_factory=dict)
    """Its newest labels, by name."""

    threads: int = 1
    """The most that were alive at one time."""

    samples: list[ContainerSample] = field(default_factory=list)
    """Its samples in order of time."""

    series: dict[str, Series] = field(default_factory=dict)
    """Its progress points, by metric."""

    role: str = ""
    """The last one that dl-probe saw, "" for none."""

    gpus: set[str] = field(default_factory=set)
    """The GPUs that it held."""

    job: str = ""
    """The job that it is a member of, "" for none."""

    user: str = ""
    """Whose job it is, "" where nothing says so."""

    gpu_seconds: float = 0.0
    """The GPU seconds for which it used one, as far as that is known."""

    gpu_joules: float = 0.0
    """The energy of GPUs for it (J)."""

    owner: Limits = field(default_factory=Limits)
    """The limits that its owner asked for, as its last sample says."""

    exit_code: int | None = None
    """That of its exit, None where it has not exited, or where that is unknown."""

    exited: float = math.nan
    """When it exited, NaN unless its last event was an exit."""

    def counted_samples(self) -> list[ContainerSample]:
        """Return the samples that know its CPU counter."""
        return [sample for sample in self.samples if not math.isnan(sample.cpu_seconds)]

    def cpu_uses(self) -> Iterator[CpuUse]:
        """Yield what it used between the samples that know its counter.

        The counter begins at 0 when the container is started again. Where no sample says when that
        was, a counter that falls shows it.
        """
        for begin, end in pairwise(self.counted_samples()):
            used = end.cpu_seconds - begin.cpu_seconds
            yield CpuUse(begin, end, end.cpu_seconds if _restarted(begin, end) else max(0.0, used))

    def cpu_seconds_since(self, begin: float) -> float:
        """Return the CPU seconds that it used while it was recorded, those before its first sample
        included if it was started after a time."""
        first = next(iter(self.counted_samples()), None)
        before = first.cpu_seconds if first is not None and first.started > begin else 0.0
        return before + math.fsum(use.seconds for use in self.cpu_uses())


def _restarted(begin: ContainerSample, end: ContainerSample) -> bool:
    if math.isnan(begin.started) or math.isnan(end.started):
        return end.cpu_seconds < begin.cpu_seconds
    return end.started > begin.started


@dataclass(slots=True)
class HostRecord:
    """One host of a recording."""

    name: str
    """What its rows call it."""

    cpus: float = 0.0
    """The most CPUs that it was seen to have, 0 where unknown."""

    last_sampled: float = math.nan
    """The time of its last sample, NaN before one."""

    cpu_seconds: list[tuple[float, float]] = field(default_factory=list)
    """Its own counter of CPU seconds: when it was read, and what it showed."""

    idle_joules: float = 0.0
    """The energy of its GPUs that is nobody's (J)."""


@dataclass(frozen=True, slots=True)
class ContainerRecords:
    """The hosts and containers of a recording."""

    hosts: Sequence[HostRecord]
    """In order of their first rows."""

    containers: Sequence[ContainerRecord]
    """In order of their first rows."""

    @property
    def last_sampled(self) -> float:
        """Time of the last sample of all hosts, infinity where there is none."""
        times = [host.last_sampled for host in self.hosts if not math.isnan(host.last_sampled)]
        return max(times, default=math.inf)


def main_metric(series: Mapping[str, Series], metric: str | None) -> str:
    """Return the metric that judges a job, of those it has reported; "" where it has reported none.
    It is the `metric` of its label, if that has ever been finite, else the first in order."""
    seen = {
        name: judging_metric.seen(point.value for point in points)
        for name, points in series.items()
    }
    if metric is not None and metric in seen and seen[metric].points:
        return metric
    return next(iter(judging_metric.evaluation_order(seen)), "")


_Key = tuple[str, str]
"""Host and container id."""
_Containers = dict[_Key, ContainerRecord]
_Exits = dict[_Key, tuple[float, int | None]]
"""Time and code by container."""
_Energies = dict[_Key, GpuEnergy]
"""By host and GPU."""


def read_containers(tables: Iterable[pa.Table]) -> ContainerRecords:
    """Return the hosts and containers of a recording, whose tables and rows are in order of time.
    None of the tables is kept.

    A host of which nothing but progress is known has containers without samples. Where the columns
    of events are missing, no exit is known.
    """
    hosts: dict[str, HostRecord] = {}
    containers: _Containers = {}
    exits: _Exits = {}
    energies: _Energies = {}
    sampled: set[str] = set()
    unsampled: list[pa.Table] = []
    for table in tables:
        sampled.update(hosts_of(table, SAMPLED))
        if others := hosts_of(table, (Kind.PROGRESS,)) - sampled:
            unsampled.append(table.filter(is_one_of(table.column("host"), others)))
        joules = read_joules(table) if "gpu_energy_joules" in table.column_names else {}
        for chunk in table_chunks(table):
            for name, samples in samples_by_host(chunk).items():
                host = hosts.setdefault(name, HostRecord(name))
                before = host.last_sampled
                _add_host(host, samples)
                _add_samples(name, samples, containers)
                _add_points(name, samples.points, containers)
                _add_gpus(name, samples, before, containers)
                _add_energies(name, samples, joules, energies)
        if "event" in table.column_names:
            _note_exits(table, exits)
    _add_unsampled(concat(unsampled), sampled, containers)
    _divide(energies, hosts, containers)
    for key, (time, code) in exits.items():
        if key in containers:
            containers[key].exited, containers[key].exit_code = time, code
    return ContainerRecords(list(hosts.values()), list(containers.values()))


def _add_host(host: HostRecord, samples: HostSamples) -> None:
    host.cpus = max([host.cpus, *(size for size in samples.sizes if size > 0)])
    if samples.times:
        host.last_sampled = samples.times[-1] / MICRO
    host.cpu_seconds += [
        (micros / MICRO, busy)
        for micros, busy in zip(samples.times, samples.busy, strict=True)
        if not math.isnan(busy)
    ]


def _add_samples(host: str, samples: HostSamples, containers: _Containers) -> None:
    ids = samples.rows["container_id"]
    for number, micros in enumerate(samples.times):
        for row in range(samples.bounds[number], samples.bounds[number + 1]):
            key = (host, ids[row])
            if key not in containers:
                time = micros / MICRO
                containers[key] = ContainerRecord(*key, "", first_seen=time, last_seen=time)
            _add_sample(containers[key], samples, number, row)


def _add_sample(container: ContainerRecord, samples: HostSamples, number: int, row: int) -> None:
    """Add one row of the sample of this number."""
    rows = samples.rows
    container.name = rows["container_name"][row] or container.id[:12]
    container.last_seen = samples.times[number] / MICRO
    container.threads = max(container.threads, rows["thread_count"][row] or 1)
    if rows["labels"][row]:
        container.labels = labels.parse_labels(rows["labels"][row])
    if rows["started_at"][row] is not None:
        container.started = rows["started_at"][row] / MICRO
    container.role = rows["role"][row] or container.role
    container.job = rows["job"][row] or container.job
    container.user = container.labels.get(labels.USER) or rows["user"][row] or container.user
    container.owner = limits_at(rows, row, ASKED)
    limits = limits_at(rows, row, IN_FORCE)
    if container.samples and container.samples[-1].limits == limits:
        limits = container.samples[-1].limits  # one for all of them: recordings are long
    container.samples.append(
        ContainerSample(
            container.last_seen,
            samples.sizes[number],
            rows["state"][row] or "running",
            container.started,
            rows["cpu_seconds"][row],
            limits,
            rows["turn_seconds"][row],
            rows["turn_queue"][row] or "",
        )
    )


def _add_points(host: str, points: PointsByMetric, containers: _Containers) -> None:
    for container_id, by_metric in points.items():
        container = containers.get((host, container_id))
        if container is None:
            continue
        for metric, new in by_metric.items():
            container.series.setdefault(metric, []).extend(
                SeriesPoint(micros / MICRO, value)
                for micros, value in zip(new.times, new.values, strict=True)
            )


def _add_gpus(host: str, samples: HostSamples, before: float, containers: _Containers) -> None:
    """Add the GPUs that containers held, and for how long they used them: what a row says holds
    since the sample before it, the first one after the time `before`."""
    earlier = before
    for micros in samples.times:
        time = micros / MICRO
        for container_id, held in samples.devices.get(micros, {}).items():
            container = containers.get((host, container_id))
            if container is None:
                continue
            container.gpus.update(held)
            ratio = math.fsum(use.ratio for use in held.values() if math.isfinite(use.ratio))
            if time > earlier:
                container.gpu_seconds += ratio * (time - earlier)
        earlier = time


def _add_energies(host: str, samples: HostSamples, joules: Joules, energies: _Energies) -> None:
    for micros in samples.times:
        uses = samples.devices.get(micros, {})
        for gpu, count in joules.get((host, micros), {}).items():
            own = {key: held[gpu].ratio for key, held in uses.items() if gpu in held}
            energies.setdefault((host, gpu), GpuEnergy()).add(micros, count, own)


def _divide(energies: _Energies, hosts: Mapping[str, HostRecord], containers: _Containers) -> None:
    """Add their energy to the containers, and what is nobody's to the hosts."""
    for (host, _), energy in energies.items():
        divided = energy.by_container()
        hosts[host].idle_joules += energy.joules - math.fsum(divided.values())
        for key, joules in divided.items():
            if (host, key) in containers:
                containers[host, key].gpu_joules += joules


def _add_unsampled(table: pa.Table, sampled: Collection[str], containers: _Containers) -> None:
    """Add the containers of hosts of which nothing but progress is known, as of a saved log."""
    points = table.filter(is_one_of(table.column("kind"), (Kind.PROGRESS,)))
    names = (texts(points, name) for name in ("host", "container_id", "container_name"))
    for host, container, name, micros in zip(*names, integers(points, "time"), strict=True):
        if not container or host in sampled:
            continue
        time = micros / MICRO
        record = containers.get((host, container))
        if record is None:
            record = containers[host, container] = ContainerRecord(
                host, container, "", time, time, is_sampled=False, started=time
            )
        record.name = name or container[:12]
        record.last_seen = time
    for chunk in table_chunks(table):
        for name, samples in samples_by_host(chunk).items():
            if name not in sampled:
                _add_points(name, samples.points, containers)


def _note_exits(table: pa.Table, last: _Exits) -> None:
    """Note the time and code of the exit of the containers whose last event is one, not another
    start."""
    events = table.filter(is_one_of(table.column("kind"), (Kind.EVENT,)))
    events = events.filter(is_one_of(events.column("event"), ("start", "exit")))
    names = (texts(events, name) for name in ("host", "container_id", "event"))
    whens = zip(integers(events, "time"), optional_integers(events, "exit_code"), strict=True)
    for host, container, event, (micros, code) in zip(*names, whens, strict=True):
        last.pop((host, container), None)
        if event == "exit":
            last[host, container] = micros / MICRO, code
