"""Containers over time, worked by hand: CPU use, limits, progress, exits, logs alone."""

import math

import pytest
from helpers import recorded_jobs
from helpers.recorded_jobs import at

from dltools.observations.container_records import (
    ContainerRecord,
    ContainerRecords,
    ContainerSample,
    HostRecord,
    read_containers,
)
from dltools.observations.samples_by_host import SAMPLE_COLUMNS
from dltools.observations.table import Row, to_table

UNKNOWN = math.nan


def sample(time: float, cpu: float = 0.0, **more: object) -> ContainerSample:
    usual = ContainerSample(time, 4.0, "running", UNKNOWN, cpu, {"cpus": 4.0}, UNKNOWN)
    return usual._replace(**more)  # type: ignore[arg-type]


def record(*samples: ContainerSample) -> ContainerRecord:
    first, last = samples[0].time, samples[-1].time
    return ContainerRecord("h", "c", "name", first, last, samples=list(samples))


def uses(one: ContainerRecord) -> list[tuple[float, float, float]]:
    return [(use.begin.time, use.end.time, use.seconds) for use in one.cpu_uses()]


def test_cpu_use_is_the_growth_of_the_counter() -> None:
    one = record(sample(0, 5), sample(10, 15), sample(20, 16))
    assert uses(one) == [(0, 10, 10), (10, 20, 1)]
    assert [use.cores for use in one.cpu_uses()] == [1.0, 0.1]
    # Samples without a counter are passed over.
    assert uses(record(sample(0, 5), sample(10, UNKNOWN), sample(20, 9))) == [(0, 20, 4)]
    assert uses(record(sample(0, UNKNOWN))) == []
    (use,) = record(sample(10, 5), sample(10, 6)).cpu_uses()
    assert (use.span_s, use.cores) == (0, 0)  # no time is no use


@pytest.mark.parametrize(("started", "used"), [((1, 12), 3), ((1, 1), 0), ((UNKNOWN, 12), 3)])
def test_a_counter_that_falls_begins_anew_unless_the_start_is_the_same(started, used) -> None:
    before, after = started
    one = record(sample(10, 50, started=before), sample(20, 3, started=after))
    assert uses(one) == [(10, 20, used)]


@pytest.mark.parametrize(("started", "expected"), [(8, 5), (-8, 2)])
def test_what_was_used_before_the_first_sample_counts_since_the_start(started, expected) -> None:
    one = record(sample(10, 3, started=started), sample(20, 5, started=started))
    assert one.cpu_seconds_since(0) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 4.0),
        ({"limits": {"cpus": 1.5}}, 1.5),
        ({"limits": {"cpus": 4.0, "cpuset": "0-1"}}, 2.0),
        ({"limits": {"cpus": 1.5, "cpuset": "0-1"}}, 1.5),
        ({"limits": {"cpus": 1.5, "cpuset": "what"}}, 1.5),
        ({"state": "paused"}, 0.0),
        ({"limits": {}}, pytest.approx(UNKNOWN, nan_ok=True)),
    ],
)
def test_state_quota_and_cpu_list_allow_cores(more, expected) -> None:
    assert sample(0, **more).allowed_cores() == expected


def test_the_last_sample_is_that_of_all_hosts() -> None:
    hosts = [HostRecord("a", 1.0, 5.0), HostRecord("b", 1.0, 9.0), HostRecord("log")]
    assert ContainerRecords(hosts, []).last_sampled == 9.0
    assert ContainerRecords(hosts[2:], []).last_sampled == math.inf


ZERO = recorded_jobs.BEGIN.timestamp()
ID = {"container_id": "c" * 64}


def node(time: float, cpus: float | None = 2.0) -> Row:
    return recorded_jobs.node(time) | {"cpu_count": cpus}


def container(time: float, **more: object) -> Row:
    unknown = {"cpu_limit_cores": None, "cpu_weight": None}
    return recorded_jobs.container(time, "c", time) | ID | unknown | more


def point(time: float, value: float, host: str = "h") -> Row:
    return recorded_jobs.point(time, "c", "loss", value, host) | ID


def event(time: float, name: str, code: int | None = None) -> Row:
    return recorded_jobs.ended(time, "c", code, event=name) | ID


def only(*rows: Row) -> ContainerRecord:
    (found,) = read_containers([to_table(rows)]).containers
    return found


def test_a_container_has_its_samples_and_progress() -> None:
    found = only(
        node(0),
        container(0, thread_count=2, labels='{"dltools.metric": "loss"}'),
        point(1, 0.5),
        node(10),
        container(10, thread_count=8, container_name="renamed", started_at=at(-5)),
        point(12, math.nan),
        node(20),
        container(20, thread_count=3, state="paused"),
    )
    assert (found.host, found.id, found.name, found.threads) == ("h", "c" * 64, "c", 8)
    assert found.labels == {"dltools.metric": "loss"}
    assert (found.first_seen, found.last_seen) == (ZERO, ZERO + 20)
    assert [one.time - ZERO for one in found.samples] == [0, 10, 20]
    assert [one.cpu_seconds for one in found.samples] == [0, 10, 20]
    assert [one.is_paused for one in found.samples] == [False, False, True]
    starts = [one.started - ZERO for one in found.samples]
    assert math.isnan(starts[0])
    assert starts[1:] == [-5, -5]  # once known, it stays
    assert [one.time - ZERO for one in found.series["loss"]] == [1, 12]
    assert found.is_sampled


def test_what_is_not_recorded_is_unknown_or_as_by_default() -> None:
    found = only(node(0, None), container(0, container_name=None, state=None, cpu_seconds=None))
    (one,) = found.samples
    assert (found.name, one.state, one.limits) == ("c" * 12, "running", {})
    unknown = (one.host_cpus, one.cpu_seconds, one.quota, one.turn_s, one.started)
    assert all(map(math.isnan, unknown))


def test_hosts_have_the_most_cpus_and_their_last_sample() -> None:
    rows = [node(0, 4.0), node(10, 2.0), node(20, None), point(30, 1.0, "log")]
    found = read_containers([to_table(rows)])
    known = {host.name: (host.cpus, host.last_sampled - ZERO) for host in found.hosts}
    assert known["h"] == (4.0, 10)  # it was not reached later
    assert known["log"][0] == 0.0
    assert found.last_sampled == ZERO + 10


def test_a_host_that_is_known_from_progress_alone_has_containers_without_samples() -> None:
    found = only(node(0), point(1, 3.0), point(2, 2.0, "log"), point(5, 1.0, "log"))
    assert (found.host, found.is_sampled, found.samples) == ("log", False, [])
    assert (found.first_seen, found.last_seen, found.started) == (ZERO + 2, ZERO + 5, ZERO + 2)
    assert [value for _, value in found.series.get("loss", [])] == [2.0, 1.0]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([], None),
        ([("exit", 3)], 3),
        ([("exit", 3), ("start", None), ("exit", 0)], 0),
        ([("exit", 3), ("update", None)], 3),
    ],
)
def test_an_exit_code_is_that_of_the_last_event(events, code) -> None:
    rows = [event(11 + number, *one) for number, one in enumerate(events)]
    assert only(node(0), container(0), *rows).exit_code == code


@pytest.mark.parametrize("cut", range(9))
def test_a_recording_in_parts_shows_the_same(cut) -> None:
    rows = [node(0), container(0), point(1, 3.0, "log"), point(2, 2.0)]
    rows += [node(5), container(5), point(6, 1.0, "log"), event(7, "exit", 3)]
    table = to_table(rows)
    parts = read_containers([table.slice(0, cut), table.slice(cut)])
    whole = read_containers([table])
    assert parts.last_sampled == whole.last_sampled
    for one, other in zip(parts.containers, whole.containers, strict=True):
        assert (one.id, one.is_sampled, one.series) == (other.id, other.is_sampled, other.series)
        assert (one.exit_code, len(one.samples)) == (other.exit_code, len(other.samples))


def test_a_table_of_the_deciding_columns_alone_is_read() -> None:
    table = to_table([node(0), container(0), point(1, 2.0), event(2, "exit", 3)])
    (found,) = read_containers([table.select(list(SAMPLE_COLUMNS))]).containers
    assert (len(found.samples), len(found.series["loss"]), found.exit_code) == (1, 1, None)
    empty = read_containers([to_table([])])
    assert (list(empty.hosts), list(empty.containers)) == ([], [])
