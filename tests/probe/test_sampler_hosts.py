"""Several hosts at the same time: a slow or dead one costs the others nothing."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import eventually
from helpers.examples import repeated
from helpers.fake_engine import FakeEngine
from helpers.scripted_engine import ScriptedEngine

from dltools.engine.docker.answers import usage_of
from dltools.errors import UnavailableError
from dltools.probe.sampler import Options, Sampler

Rows = list[dict[str, Any]]
Connectors = dict[str, Callable[[], Any]]


def hosts(connectors: Connectors, deadline_s: float = 5.0) -> Sampler:
    return Sampler(connectors, Options({}, 1e9), deadline_s)


def gaps(rows: Rows) -> dict[str, str]:
    """The hosts that are not in a sample, and why."""
    return {
        row["host"]: row["gap"] for row in rows if "cpu_count" not in row and row["kind"] == "node"
    }


def sampled(rows: Rows) -> set[str]:
    return {row["host"] for row in rows if row["kind"] == "node" and "cpu_count" in row}


def dead() -> Any:
    raise UnavailableError("no Docker engine answers")


def engine(name: str) -> ScriptedEngine:
    made = ScriptedEngine(host=name, id=name, is_local=False)
    made.start(f"job-{name}")
    return made


def test_a_sample_has_the_rows_of_all_hosts() -> None:
    found = hosts({name: lambda name=name: engine(name) for name in "ab"})  # type: ignore[misc]
    rows = found.sample()
    assert sampled(rows) == {"a", "b"}
    names = {row["container_name"] for row in rows if row["kind"] == "container"}
    assert names == {"job-a", "job-b"}
    assert found.is_complete and not found.faults


def test_a_dead_host_is_a_gap_under_the_name_of_its_address() -> None:
    found = hosts({"a": lambda: engine("a"), "tcp://b:1": dead})
    rows = found.sample()
    assert sampled(rows) == {"a"}
    assert gaps(rows) == {"tcp://b:1": "no sample: no Docker engine answers"}
    assert not found.is_complete


def test_no_host_at_all_is_an_error_but_only_at_first() -> None:
    with pytest.raises(UnavailableError, match="no Docker engine answers"):
        hosts({"a": dead, "b": dead}).sample()
    one = engine("a")
    found = hosts({"tcp://a:1": lambda: one, "b": dead})
    found.sample()
    one.is_away = True
    assert gaps(found.sample()).keys() == {"a", "b"}


def test_a_slow_host_is_in_the_next_sample_and_loses_nothing() -> None:
    slow = engine("slow")
    slow.log(next(iter(slow.known)), 1, "loss: 0.5")

    goes_on = threading.Event()

    def connect() -> Any:
        goes_on.wait(60)
        return slow

    found = hosts({"a": lambda: engine("a"), "s": connect}, deadline_s=0.2)
    found.follow()
    first = found.sample()
    assert gaps(first) == {"s": "no sample: no answer within 0.2 s"}
    goes_on.set()
    second = eventually(found.sample, lambda rows: "slow" in sampled(rows))
    assert sampled(second) == {"a", "slow"}
    assert [row["value"] for row in second if row["kind"] == "progress"] == [0.5]


def test_a_host_that_is_late_again_and_again_gives_each_row_once(monkeypatch) -> None:
    slow = engine("slow")
    (id_,) = slow.known
    found = hosts({"a": lambda: engine("a"), "s": lambda: slow}, deadline_s=0.2)
    found.follow()
    rows = eventually(found.sample, lambda rows: "slow" in sampled(rows))
    goes_on, is_asked, usage = threading.Event(), threading.Event(), slow.usage

    def late(id_: str) -> Any:
        is_asked.set()
        goes_on.wait(60)
        return usage(id_)

    monkeypatch.setattr(slow, "usage", late)
    for number in range(1, 5):
        slow.log(id_, number, f"loss: 0.{number}")
        goes_on.clear()
        is_asked.clear()
        rows += found.sample()  # the reading has begun, and takes what waits of the one before
        assert is_asked.wait(60)
        goes_on.set()
        eventually(lambda: not found._hosts[1].is_busy)
    rows += found.sample()
    values = [row["value"] for row in rows if row["kind"] == "progress"]
    assert values == [0.1, 0.2, 0.3, 0.4]
    slow.raw_events.put(None)


def test_a_host_that_comes_back_is_sampled_again() -> None:
    one = engine("b")
    found = hosts({"a": lambda: engine("a"), "b": lambda: one})
    found.follow()
    assert sampled(found.sample()) == {"a", "b"}
    one.is_away = True
    one.raw_events.put(UnavailableError("no Docker engine answers"))
    eventually(lambda: gaps(found.sample()).keys() == {"b"})
    one.is_away = False
    assert sampled(found.sample()) == {"a", "b"}
    assert not found.faults and not found.is_complete
    one.raw_events.put(None)


def test_two_hosts_of_one_name_are_not_taken_for_one() -> None:
    found = hosts({"tcp://a:1": lambda: engine("lab"), "tcp://b:1": lambda: engine("lab")})
    rows = found.sample()
    assert sampled(rows) == {"lab"}
    (why,) = gaps(rows).values()
    assert "it has the same host name as the engine at tcp://" in why


@pytest.mark.parametrize("is_version_2", [False, True])
def test_the_engine_tells_counters_where_no_cgroup_is_seen(is_version_2) -> None:
    parts = {"total_inactive_file": 30, "total_rss": 50, "total_cache": 40}
    if is_version_2:
        parts = {"inactive_file": 30, "anon": 50, "file": 40}
    io = [{"op": "Read", "value": 7}, {"op": "write", "value": 9}, {"op": "Total", "value": 16}]
    stats: dict[str, Any] = {
        "cpu_stats": {
            "cpu_usage": {"total_usage": 2_500_000_000},
            "throttling_data": {"throttled_time": 500_000_000},
        },
        "memory_stats": {"usage": 100, "limit": 1 << 30, "stats": parts},
        "pids_stats": {"current": 3},
        "blkio_stats": {"io_service_bytes_recursive": io},
        "networks": {"eth0": {"rx_bytes": 1, "tx_bytes": 2}, "eth1": {"rx_bytes": 3}},
    }
    one = engine("a")
    one.counted[next(iter(one.known))] = stats
    rows = hosts({"a": lambda: one, "b": dead}).sample()
    (row,) = (row for row in rows if row["kind"] == "container")
    assert (row["cpu_seconds"], row["cpu_throttled_seconds"], row["thread_count"]) == (2.5, 0.5, 3)
    assert (row["memory_usage_bytes"], row["memory_working_set_bytes"]) == (100, 70)
    assert (row["memory_anon_bytes"], row["memory_file_bytes"]) == (50, 40)
    assert (row["io_read_bytes"], row["io_write_bytes"]) == (7, 9)
    assert (row["network_receive_bytes"], row["network_transmit_bytes"]) == (4, 2)
    assert row["gap"].endswith("counters are the engine's: no pressure, no OpenMP")


@pytest.mark.parametrize(
    "hostile",
    [
        {},
        {"cpu_stats": 3, "networks": [1]},
        {
            "cpu_stats": {"cpu_usage": {"total_usage": "x"}},
            "memory_stats": {"usage": -1, "stats": None},
            "blkio_stats": {"io_service_bytes_recursive": [1]},
        },
    ],
)
def test_whatever_the_engine_tells_is_no_error(hostile) -> None:
    used = usage_of(hostile)
    assert used.cpu.seconds is used.memory.used is used.threads is None
    assert used.network == (None, None)


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[dict[str, FakeEngine]]:
    with ExitStack() as stack:
        one = stack.enter_context(FakeEngine(tmp_path / "a.sock", "a"))
        yield {"a": one, "b": stack.enter_context(FakeEngine.over_tcp("b"))}


def test_dl_probe_samples_several_hosts(tool, engines) -> None:
    named = [word for fake in engines.values() for word in ("--host", fake.url)]
    named += ["--deadline", "60"]  # the machine may do other things
    done = tool("dl-probe", *named, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["host"] for row in rows if row["kind"] == "node"} == {"a", "b"}
    table = tool("dl-probe", *named, "--format", "table").stdout.decode()
    assert "HOST" in table and "\nb " in table


@pytest.mark.slow
def test_dl_probe_says_which_host_is_not_in_a_sample(tool, engines) -> None:
    engines["b"].delay_s = 30.0
    named = [word for fake in engines.values() for word in ("--host", fake.url)]
    begun = time.monotonic()
    stream = ["-i", "0.5", "-c", "2", "--format", "jsonl"]
    done = tool("dl-probe", *named, "--host", "tcp://127.0.0.1:1", *stream)
    assert time.monotonic() - begun < 30.0
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    lost = [row for row in rows if row["kind"] == "node" and "cpu_count" not in row]
    assert {row["host"] for row in lost} == {engines["b"].url, "tcp://127.0.0.1:1"}
    said = done.stderr.decode()
    assert len(said.splitlines()) == 2, said
    assert f"{engines['b'].url}: no answer within 0.5 s; the sample lacks it" in said


@pytest.mark.slow
def test_many_slow_hosts_take_no_longer_than_the_slowest(tool) -> None:
    most, delay_s = repeated(10, 100), repeated(3, 10) / 10
    with ExitStack() as stack:
        fakes = [
            stack.enter_context(FakeEngine.over_tcp(f"host-{number}", delay_s))
            for number in range(most)
        ]
        urls = [fake.url for fake in fakes]
        took = {}
        for many in (1, most):
            named = [word for url in urls[:many] for word in ("--host", url)]
            begun = time.monotonic()
            done = tool("dl-probe", *named, "--deadline", "60", "--format", "jsonl")
            took[many] = time.monotonic() - begun
            assert done.returncode == 0, done.stderr
            hosts = {json.loads(line)["host"] for line in done.stdout.splitlines()}
            assert len(hosts) == many
        print(took)
        assert took[most] < 3 * took[1]  # one after the other would be many times as long
