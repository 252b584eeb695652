"""Requests to the engine: quiet streams, lost connections, refusals, engines elsewhere."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.containers import api, eventually, socket_path
from helpers.engine_relay import EngineRelay
from helpers.tools import complaint

from dltools.engine.docker import http
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.interface import GoneError, RefusedError


@pytest.fixture(autouse=True)
def by_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let logs be asked for although root can read their files."""
    monkeypatch.setattr("dltools.engine.docker.engine.log_file", lambda _container: None)


def test_a_quiet_event_stream_outlives_the_timeout(run, monkeypatch) -> None:
    monkeypatch.setattr(http, "TIMEOUT_S", 3)
    seen: list[tuple[str, str]] = []
    events = DockerEngine().events(time.time())

    def watch() -> None:
        seen.extend((e.container_id, e.action) for e in events)

    threading.Thread(target=watch, daemon=True).start()
    time.sleep(5)
    job = run("sleep 600")
    eventually(lambda: seen, lambda seen: (job.id, "start") in seen)
    api().pause(job.id)
    eventually(lambda: seen, lambda seen: (job.id, "pause") in seen)


def says_one_and_two(flow: Any) -> None:
    """Wait for two lines of a log, and no more."""
    came = []

    def both() -> bool:
        came.extend(flow.take())
        return [entry.split()[1] for entry in came] == [b"one", b"two"]

    eventually(both)


def test_a_quiet_log_outlives_the_timeout(run, monkeypatch) -> None:
    job = run("echo one; sleep 5; echo two; sleep 600")
    monkeypatch.setattr(http, "TIMEOUT_S", 3)
    engine = DockerEngine()
    flow = engine.follow(engine.inspect(job.id), 0.0)
    says_one_and_two(flow)
    assert not flow.ended


def test_a_log_ends_with_its_container(run) -> None:
    job = run("echo one; sleep 1; echo two")
    engine = DockerEngine()
    flow = engine.follow(engine.inspect(job.id), 0.0)
    flow.wait(120)
    assert flow.ended
    assert [e.split()[1] for e in flow.take()] == [b"one", b"two"]


def test_a_log_that_nobody_takes_stays_bounded(run, monkeypatch) -> None:
    monkeypatch.setattr(http, "LARGEST", 100_000)
    job = run("yes 0123456789012345678901234567890123456789; sleep 1")
    engine = DockerEngine()
    flow = engine.follow(engine.inspect(job.id), 0.0)
    time.sleep(1)
    eventually(lambda: (flow.take(), flow.is_behind)[1])
    assert sum(map(len, flow.take())) <= 100_000 + (1 << 18)
    eventually(lambda: len(flow.take()) > 0)
    flow.close()
    assert flow.ended


@pytest.mark.parametrize(
    ("host", "code", "said"),
    [
        ("garbage", 78, "DOCKER_HOST 'garbage': no address of a Docker engine; write unix:///"),
        ("tcp://127.0.0.1", 78, "no address of a Docker engine"),
        ("tcp://127.0.0.1:port", 78, "no address of a Docker engine"),
        ("npipe:////./pipe/docker_engine", 78, "no address of a Docker engine"),
        ("/var/run/docker.sock", 78, "write unix:///PATH"),
        ("tcp://no-such-host.invalid:2375", 69, "no-such-host.invalid:2375: no such host"),
        ("tcp://127.0.0.1:1", 69, "nothing listens there; is dockerd running?"),
        ("unix:///no-such-socket", 69, "no such socket; is dockerd running?"),
        ("unix:///etc/passwd", 69, "nothing listens there"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_why(tool, host, code, said) -> None:
    done = tool("dl-probe", env={"DOCKER_HOST": host})
    assert done.returncode == code
    assert said in complaint(done.stderr)


def test_what_is_not_there_is_gone(engine) -> None:
    with pytest.raises(GoneError, match="No such container"):
        engine.inspect("no-such-container")
    with pytest.raises(GoneError, match="No such container"):
        engine.follow(_nobody(), 0.0)


def _nobody() -> Any:
    class Nobody:
        id = "0" * 64
        tty = False

    return Nobody()


def test_the_engines_refusal_is_its_own_words(run) -> None:
    job = run("sleep 60")
    with pytest.raises(RefusedError, match=r"(?i)cpu"):
        job.record({"NanoCpus": int(1e15)})


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerEngine]:
    """The engine, by a TCP port."""
    with EngineRelay(socket_path()) as relay:
        monkeypatch.setenv("DOCKER_HOST", relay.url)
        yield DockerEngine()


def test_an_engine_over_tcp_says_the_same(engine, run, far) -> None:
    job = run("echo one; sleep 1; echo two; sleep 60")
    assert not far.is_local
    assert (far.id, far.host, far.cpus) == (engine.id, engine.host, engine.cpus)
    assert far.inspect(job.id) == engine.inspect(job.id)
    assert job.id in [one.id for one in far.containers(["dltools-test"])]
    with pytest.raises(GoneError):
        far.inspect("no-such-container")
    says_one_and_two(far.follow(far.inspect(job.id), 0.0))
    assert far.past_events(time.time() - 60, time.time())


@pytest.mark.parametrize(
    ("newest", "oldest", "agreed"),
    [("1.41", "1.12", "1.41"), ("1.44", "1.24", "1.44"), ("1.52", "1.44", "1.44"),
     ("1.60", "1.50", "1.50"), (None, None, "1.24")],
)  # fmt: skip
def test_an_api_version_both_know_is_used(newest, oldest, agreed) -> None:
    assert http.agreed_version(newest, oldest) == agreed
