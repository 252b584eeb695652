"""What every source of progress does, whatever it reads."""

import http.server
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from helpers.located_containers import container
from helpers.scripted_engine import ScriptedEngine
from probe.endpoints.test_scraper import Server

from dltools.labels import FILES
from dltools.probe.endpoints import endpoint_source
from dltools.probe.files.file_source import file_source
from dltools.probe.files.rooted import Root
from dltools.probe.log_source import log_source
from dltools.probe.progress.source import ProgressSource, Target, TimedPoint
from dltools.probe.progress_sources import SOURCES, SourceSet

Make = Callable[[Target], ProgressSource | None]


@dataclass
class Case:
    """A container with progress: `report` makes more of it, `fail` makes it unreadable."""

    make: Make
    target: Target
    report: Callable[[int], None]
    fail: Callable[[], None]
    metric: str


def target(labels: dict[str, str], engine: Any = None, pid: int = 0) -> Target:
    made = container(pid=pid, labels=labels)
    return Target(engine or ScriptedEngine(), made, is_followed=True)


def a_log(_: Path, __: ExitStack) -> Case:
    engine = ScriptedEngine()
    id_ = engine.start("job")
    followed = Target(engine, engine.known[id_], is_followed=True)  # type: ignore[arg-type]

    def fail() -> None:
        engine.stop(id_)
        del engine.logged[id_]

    def report(step: int) -> None:
        engine.log(id_, step, f"step {step} loss: 0.5")

    return Case(log_source, followed, report, fail, "loss")


def a_file(folder: Path, _: ExitStack) -> Case:
    log = folder / "own.csv"
    log.write_text("step,loss\n")

    def report(step: int) -> None:
        with log.open("a") as file:
            file.write(f"{step},0.5\n")

    found = target({"dltools.files": str(log)}, pid=os.getpid())
    return Case(file_source, found, report, log.unlink, "loss")


def an_endpoint(_: Path, stack: ExitStack) -> Case:
    server, counted = Server(), 0
    stack.callback(server.stop)

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(f"ts_inference_requests_total {counted}\n".encode())

    def report(step: int) -> None:
        nonlocal counted
        counted = step

    server.answer = answer
    found = target({"dltools.endpoint": server.url})
    return Case(endpoint_source, found, report, server.stop, "request_rate")


CASES = {log_source: a_log, file_source: a_file, endpoint_source: an_endpoint}


@pytest.fixture(params=CASES.values(), ids=["log", "file", "endpoint"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    with ExitStack() as stack:
        yield request.param(tmp_path, stack)


def started(case: Case) -> ProgressSource:
    source = case.make(case.target)
    assert source is not None
    return source


def metrics(found: list[TimedPoint]) -> list[str]:
    assert all(isinstance(one, TimedPoint) and one.time.tzinfo is UTC for one in found)
    return [one.point.metric for one in found]


def test_every_source_is_tested_here() -> None:
    assert set(SOURCES) == set(CASES)


def test_a_point_is_given_once(case) -> None:
    source = started(case)
    assert source.read(0.0, 0.0) == []
    case.report(1)
    assert metrics(source.read(10.0, 0.0)) == [case.metric]
    assert source.read(10.0, 0.0) == []
    case.report(2)
    assert metrics(source.read(20.0, 0.0)) == [case.metric]
    assert source.gap is None


def test_a_source_goes_on_when_its_container_starts_again(case) -> None:
    source = started(case)
    source.read(0.0, 0.0)
    assert source.stop() == []
    assert source.read(10.0, 0.0) == []
    source.restart(case.target)
    source.read(40.0, 0.0)
    case.report(1)
    assert metrics(source.read(50.0, 0.0)) == [case.metric]


def test_a_source_goes_on_after_the_engine_was_away(case) -> None:
    source = started(case)
    source.reconnect()
    source.read(0.0, 0.0)
    source.reconnect()
    case.report(1)
    assert metrics(source.read(10.0, 0.0)) == [case.metric]


def test_what_cannot_be_read_gives_no_points_and_no_error(case) -> None:
    source = started(case)
    case.fail()
    assert source.read(0.0, 0.0) == []
    assert source.read(10.0, 0.0) == []
    assert source.stop() == []
    source.close()


def test_a_closed_source_can_be_closed_again(case) -> None:
    source = started(case)
    source.read(0.0, 0.0)
    source.close()
    source.close()


def test_only_an_endpoint_needs_two_readings(case) -> None:
    assert started(case).needs_two_readings is (case.make is endpoint_source)


@pytest.mark.parametrize(
    ("make", "labels", "is_local"),
    [
        (file_source, {"dltools.files": "none"}, True),
        (file_source, {"dltools.files": ""}, True),
        (endpoint_source, {}, True),
        (endpoint_source, {"dltools.endpoint": "ftp://job"}, True),
        (endpoint_source, {"dltools.endpoint": "http://job:1/metrics"}, False),
    ],
)
def test_a_container_may_have_no_such_source(make, labels, is_local) -> None:
    assert make(target(labels, ScriptedEngine(is_local=is_local))) is None


def test_files_out_of_sight_are_no_source() -> None:
    hidden = target({})
    assert file_source(Target(hidden.engine, hidden.container, is_visible=False)) is None


def test_a_container_has_one_set_of_sources_over_all_its_starts(tmp_path) -> None:
    sources = SourceSet()
    first = target({"dltools.files": str(tmp_path / "none.csv")}, pid=os.getpid())
    sources.start(first)
    known = sources.all
    assert len(known) == 2  # the log and the files
    sources.start(first)
    assert sources.all == known
    known[0].gap = "logs: lost"
    assert sources.gaps == ["logs: lost"]


def test_a_label_names_only_so_many_files(monkeypatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Root, "files", lambda _, path, **__: asked.append(path) or iter(()))
    (source,) = filter(None, [file_source(target({FILES: "/a/*," * 30_000}, pid=os.getpid()))])
    assert source.read(0, 0) == []
    assert len(asked) == 64
