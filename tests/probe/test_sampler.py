"""Samples: what is in each, and that nothing is lost or given twice."""

import time
from datetime import timedelta
from typing import Any

import pytest
from helpers.scripted_engine import BEGUN, ScriptedEngine, event

from dltools.engine.interface import Container, RefusedError
from dltools.errors import UnavailableError
from dltools.probe.log_source import LogSource
from dltools.probe.sampler import Options, Sampler

FROM_THE_BEGINNING = 1e9


def sampler(engine: Any, **options: Any) -> Sampler:
    return Sampler({"": lambda: engine}, Options({}, FROM_THE_BEGINNING, **options))


def followed(engine: Any) -> Sampler:
    """A stream of samples of which the first has been taken."""
    found = sampler(engine)
    found.follow()
    found.sample()
    return found


def values(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(row["metric"], row["value"]) for row in rows if row["kind"] == "progress"]


def kinds(rows: list[dict[str, Any]]) -> list[str]:
    return [row["kind"] for row in rows]


def test_a_sample_has_progress_events_the_host_and_its_containers(engine) -> None:
    id_ = engine.start("job")
    engine.log(id_, 1, "loss: 0.5")
    engine.past = [event("start", id_, "job")]
    rows = sampler(engine).sample()
    assert sorted(kinds(rows)) == ["container", "event", "node", "progress"]
    (host,) = (row for row in rows if row["kind"] == "node")
    assert host["gap"] == "the engine's host is not this machine"
    assert (host["cpu_count"], host["memory_total_bytes"]) == (4.0, 1 << 33)
    assert host["probe_sample_seconds"] > 0
    assert {row["host"] for row in rows} == {"host"}


def test_counters_alone_have_no_progress(engine) -> None:
    engine.log(engine.start("job"), 1, "loss: 0.5")
    found = sampler(engine)
    assert kinds(found.counters()) == ["node", "container"]
    assert values(found.sample()) == [("loss", 0.5)]


@pytest.mark.parametrize("is_local", [True, False])
def test_a_stream_gives_each_point_once_over_stop_and_start(engine, is_local) -> None:
    engine.is_local = is_local
    id_ = engine.start("job")
    engine.log(id_, 1, "step 1 loss: 0.5")
    found = sampler(engine)
    found.follow()
    given = values(found.sample())
    engine.log(id_, 2, "step 2 loss: 0.4")
    given += values(found.sample())
    engine.log(id_, 3, "step 3 loss: 0.3")
    engine.stop(id_)
    engine.raw_events.put(event("die", id_, "job"))
    found.resume()  # asks for the list again
    given += values(found.sample())
    engine.start("job", at=60)
    engine.log(id_, 61, "step 4 loss: 0.2")
    found.resume()
    given += values(found.sample())
    engine.log(id_, 62, "step 5 loss: 0.1")
    given += values(found.sample())
    assert [value for _, value in given] == [0.5, 0.4, 0.3, 0.2, 0.1]


@pytest.mark.parametrize("is_local", [True, False])
def test_a_log_that_cannot_be_read_is_a_gap_and_read_soon_after(
    engine, is_local, monkeypatch
) -> None:
    engine.is_local = is_local
    one, found = engine.start("one"), followed(engine)
    engine.log(one, 1, "loss: 0.5")
    two = engine.start("two")
    found.resume()
    logs = engine.logs

    def go_away(*_: object) -> list[bytes]:
        raise UnavailableError("no Docker engine answers")

    monkeypatch.setattr(engine, "logs", go_away)  # while the log of "two" is asked for
    rows = found.sample()
    assert values(rows) == [("loss", 0.5)]
    (gap,) = (row["gap"] for row in rows if row.get("container_name") == "two")
    assert gap == "counters: its processes are not on this machine; logs: no Docker engine answers"
    monkeypatch.setattr(engine, "logs", logs)
    engine.log(two, 2, "loss: 0.4")
    rows = found.sample()
    while "logs: " in str(rows):  # the log rests for ten times as long as it took to fail
        rows = found.sample()
    assert values(rows) == [("loss", 0.4)]


def test_an_event_stream_that_is_cut_is_gone_on_with(engine) -> None:
    """As by a proxy that ends what was silent for ten minutes."""
    engine.start("one")
    found = followed(engine)
    engine.raw_events.put(None)
    engine.start("two")
    gaps: list[str] = []
    while not gaps:
        gaps += [row["gap"] for row in found.sample() if "events" in str(row.get("gap"))]
    assert gaps[0].endswith("; events: the Docker engine closed the event stream")
    rows = found.sample()
    assert {row["container_name"] for row in rows if row["kind"] == "container"} == {"one", "two"}
    assert not [row for row in rows if "events" in str(row.get("gap"))]


@pytest.mark.parametrize("fault", [RefusedError("timeout"), UnavailableError("cut off")])
def test_a_container_that_cannot_be_described_is_a_gap_and_asked_for_again(
    engine, fault, monkeypatch
) -> None:
    one, two = engine.start("one"), engine.start("two")
    found, inspect = sampler(engine), engine.inspect
    found.follow()

    def fails(id_: str) -> Container:
        if id_ == two:
            raise fault
        return inspect(id_)

    monkeypatch.setattr(engine, "inspect", fails)
    engine.log(one, 1, "loss: 0.5")
    engine.log(two, 1, "loss: 0.4")
    rows = found.sample()
    assert values(rows) == [("loss", 0.5)]
    gaps = {row["container_name"]: row["gap"] for row in rows if row["kind"] == "container"}
    assert gaps["two"] == f"engine: {fault}"
    monkeypatch.setattr(engine, "inspect", inspect)
    rows = found.sample()
    while "engine: " in str(rows):  # it rests for ten times as long as it took to fail
        rows = found.sample()
    assert values(rows) == [("loss", 0.4)]
    assert "engine: " not in str(rows)


def test_a_source_that_breaks_is_a_gap_of_its_container(engine, monkeypatch) -> None:
    one, two = engine.start("one"), engine.start("two")
    engine.log(one, 1, "loss: 0.5")
    engine.log(two, 1, "loss: 0.4")
    read = LogSource.read

    def breaks(source: LogSource, now: float, since: float) -> Any:
        if source._reader.container.id == two:
            raise KeyError("Stamp")
        return read(source, now, since)

    monkeypatch.setattr(LogSource, "read", breaks)
    rows = sampler(engine).sample()
    assert values(rows) == [("loss", 0.5)]
    (gap,) = (row["gap"] for row in rows if row.get("container_name") == "two")
    assert gap.endswith("not read, which is a bug in dltools: KeyError: 'Stamp'")


def exits(rows: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return [(row["container_name"], row["exit_code"]) for row in rows if row.get("event") == "exit"]


def sampled_before_the_engine_goes(engine: ScriptedEngine) -> Sampler:
    found = followed(engine)
    engine.is_away = True
    engine.raw_events.put(None)  # the stream ends
    with pytest.raises(UnavailableError):
        while True:
            found.sample()
    engine.is_away = False
    return found


def sampled_after(found: Sampler) -> list[dict[str, Any]]:
    """Return the rows of the next samples, as dl-probe asks for them."""
    rows = []
    for _ in range(6):
        try:
            rows += found.sample()
        except UnavailableError:
            found.resume()
    return rows


def test_an_exit_that_no_event_has_told_is_in_the_next_sample(engine) -> None:
    gone, ended, stays = (engine.start(name) for name in ("gone", "ended", "stays"))
    found = sampled_before_the_engine_goes(engine)
    engine.stop(gone)
    engine.end(ended, second=30, code=3)
    found.resume()
    rows = sampled_after(found)
    assert sorted(exits(rows)) == [("ended", 3), ("gone", None)]
    (row,) = (row for row in rows if row.get("container_name") == "ended")
    assert row["time"] == BEGUN + timedelta(seconds=30)
    assert stays in {row.get("container_id") for row in rows}


def test_an_exit_is_not_missed_where_only_the_start_was_told(engine) -> None:
    """The engine went away before a sample could find the container."""
    found = followed(engine)
    id_ = engine.start("short")
    engine.raw_events.put(event("start", id_, "short"))
    assert found.wait_for_change(10)
    engine.raw_events.put(None)
    engine.stop(id_)
    found.resume()
    rows = sampled_after(found)
    told = [row["event"] for row in rows if row.get("container_name") == "short"]
    assert told == ["start", "exit"]


def test_a_restart_that_no_event_has_told_is_an_exit(engine) -> None:
    engine.start("job")
    found = sampled_before_the_engine_goes(engine)
    engine.start("job", at=60)
    found.resume()
    assert exits(sampled_after(found)) == [("job", None)]


@pytest.mark.parametrize("is_late", [True, False])
def test_an_exit_that_an_event_tells_is_given_once(engine, is_late) -> None:
    id_ = engine.start("job", at=-60)
    found = sampled_before_the_engine_goes(engine)
    engine.end(id_, second=0, code=3)
    found.resume()
    rows = found.sample() if is_late else []
    engine.raw_events.put(event("die", id_, "job", exitCode="3"))
    rows += sampled_after(found)
    time.sleep(0.1)
    assert exits(rows + found.sample()) == [("job", 3)]


def test_a_renamed_container_reports_under_its_new_name(engine) -> None:
    id_, found = engine.start("old"), followed(engine)
    engine.rename(id_, "new")
    engine.log(id_, 1, "loss: 0.5")
    found.resume()
    assert {row.get("container_name") for row in found.sample()} == {"new", None}
