"""Plans for several engines: each action on its own, and a dead engine holds up no other."""

import hashlib
import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.fake_engine import FakeEngine, action, plan_of
from helpers.tools import complaint

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Plan, Result, Status
from dltools.apply.actuator import Actuator, Connector
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.turns import Rotation
from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.journal import Journal
from dltools.engine.registry import host_address
from dltools.errors import UnavailableError

Engines = dict[str, FakeEngine]

QUOTA = {"CpuPeriod": 100_000, "CpuQuota": 150_000}


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield {n: stack.enter_context(FakeEngine(tmp_path / f"{n}.sock", n)) for n in "ab"}


def plan(*hosts: str) -> Plan:
    return plan_of(*(action({"cpus": 1.5}, id=n, host=host) for n, host in enumerate(hosts, 1)))


def connector(url: str, tmp_path: Path) -> Connector:
    def made() -> EngineActuator:
        engine = DockerEngine(connect(host_address(url)))
        rotation = Rotation(engine, tmp_path / "rotation")
        return EngineActuator(engine, Journal(tmp_path / "journal" / engine.id), rotation)

    return made


def actuators(engines: Engines, tmp_path: Path, wait_s: float = 10.0) -> Actuator:
    urls = {name: fake.url for name, fake in engines.items()}
    return Actuator({n: connector(url, tmp_path) for n, url in urls.items()}, wait_s)


def applied(group: Actuator, wanted: Plan) -> list[tuple[Status, str | None]]:
    told: list[Result] = []
    found = group.apply(wanted, told.append)
    assert sorted(told, key=lambda result: result.id) == found
    return [(result.status, result.error) for result in found]


def test_each_action_goes_to_the_engine_of_its_host(engines, tmp_path) -> None:
    group = actuators(engines, tmp_path)
    found = applied(group, plan("b", "a", "b"))
    assert found == [(Status.APPLIED, None), (Status.APPLIED, None), (Status.UNCHANGED, None)]
    assert engines["a"].updates == engines["b"].updates == [QUOTA]
    assert [result.status for result in group.undo(None, lambda _: None)] == [Status.APPLIED] * 2
    assert len(engines["a"].updates) == len(engines["b"].updates) == 2


def test_an_error_of_this_machine_ends_the_run(engines, tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    group = actuators(engines, tmp_path)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        group.apply(plan("a", "b"), lambda _: None)
    assert engines["a"].updates == engines["b"].updates == []


def test_an_action_for_a_host_that_was_not_named_is_skipped(engines, tmp_path) -> None:
    group = actuators(engines, tmp_path)
    assert applied(group, plan("c")) == [(Status.SKIPPED, "no named engine is on host c")]


def test_a_dead_engine_fails_its_own_actions_alone(engines, tmp_path) -> None:
    dead = f"unix://{tmp_path}/nobody.sock"
    urls = {"a": engines["a"].url, "c": dead}
    group = Actuator({n: connector(url, tmp_path) for n, url in urls.items()})
    (done, _), (failed, why) = applied(group, plan("a", "c"))
    assert (done, failed) == (Status.APPLIED, Status.FAILED)
    said = f"c: no Docker engine answers at {dead}: no such socket; is dockerd running?"
    assert (why, group.unreachable) == (f"host c: {said}", [said])


def test_no_engine_at_all_is_an_error(tmp_path) -> None:
    with pytest.raises(UnavailableError, match="no Docker engine answers at unix:///nobody"):
        Actuator({"c": connector("unix:///nobody.sock", tmp_path)})


def test_an_engine_that_comes_later_is_used(engines, tmp_path) -> None:
    late = FakeEngine(tmp_path / "late.sock", "late")
    group = actuators({**engines, "late": late}, tmp_path)
    assert applied(group, plan("late"))[0][0] is Status.FAILED
    with late:
        until = time.monotonic() + 30
        while applied(group, plan("late"))[0][0] is Status.FAILED and time.monotonic() < until:
            time.sleep(0.05)
        assert late.updates


def test_an_engine_that_goes_away_fails_what_is_left_and_others_go_on(engines, tmp_path) -> None:
    group = actuators(engines, tmp_path)
    engines["b"].faults["POST /update"] = 0  # it hangs up
    found = [status for status, _ in applied(group, plan("b", "a", "b"))]
    assert found == [Status.FAILED, Status.APPLIED, Status.FAILED]
    assert len(group.unreachable) == 1


def test_a_slow_engine_does_not_hold_up_the_start(engines, tmp_path) -> None:
    engines["b"].delay_s = 3.0
    begun = time.monotonic()
    group = actuators(engines, tmp_path, wait_s=0.5)
    assert time.monotonic() - begun < 2.5
    assert group.unreachable == ["b: no answer yet"]
    assert applied(group, plan("a"))[0][0] is Status.APPLIED


def test_dl_apply_applies_one_plan_to_several_hosts(tool, engines, tmp_path) -> None:
    named = [word for fake in engines.values() for word in ("--host", fake.url)]
    state = ["--state-dir", tmp_path / "state"]
    wanted = dump_plan(replace(plan("a", "b"))).encode()
    done = tool("dl-apply", *named, *state, input=wanted)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert {one["status"] for one in results} == {"applied"}
    assert engines["a"].updates == engines["b"].updates == [QUOTA]
    dead = ["--host", f"unix://{tmp_path}/nobody.sock"]
    assert tool("dl-apply", *named, *dead, *state, input=wanted).returncode == 0
    undone = tool("dl-apply", "--undo", *named, *dead, *state)
    assert undone.returncode == 1
    assert "not undone: unix:///" in complaint(undone.stderr)


def test_a_context_names_an_engine(tool, engines, tmp_path) -> None:
    meta = tmp_path / "docker/contexts/meta" / hashlib.sha256(b"lab").hexdigest()
    meta.mkdir(parents=True)
    endpoint = {"docker": {"Host": engines["b"].url, "SkipTLSVerify": False}}
    described = {"Name": "lab", "Metadata": {}, "Endpoints": endpoint}
    (meta / "meta.json").write_text(json.dumps(described))
    env = {"DOCKER_CONFIG": str(tmp_path / "docker")}
    options = ("--context", "lab", "--state-dir", tmp_path / "state")
    found = tool("dl-apply", *options, input=dump_plan(plan("b")).encode(), env=env)
    assert found.returncode == 0, found.stderr
    assert len(engines["b"].updates) == 1


# Signals and threads


class _Interrupted(BaseException):
    """What a signal raises."""


@contextmanager
def signal_after(seconds: float) -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise _Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_after_a_signal_only_actions_under_way_are_ended_and_then_undone(engines, tmp_path) -> None:
    group = actuators(engines, tmp_path)
    for fake in engines.values():
        fake.delay_s = 0.1
    several = plan(*"ab" * 20)
    changed: list[Result] = []
    begun = time.monotonic()
    with pytest.raises(_Interrupted), signal_after(0.5):
        group.apply(several, changed.append)
    took = time.monotonic() - begun
    group.end_turns()
    count = len(changed)
    undone = group.undo(group.changed, lambda _: None)
    time.sleep(1.5)
    assert took < 5
    assert len(changed) == count < len(several.actions)
    assert [result.status for result in undone] == [Status.APPLIED] * len(undone)
    assert all(fake.host_config["CpuQuota"] != QUOTA["CpuQuota"] for fake in engines.values())


def test_a_connector_that_fails_in_any_way_says_so(engines, tmp_path) -> None:
    def broken() -> EngineActuator:
        raise ValueError("no such thing")

    group = Actuator({"a": connector(engines["a"].url, tmp_path), "b": broken})
    assert group.unreachable == ["b: ValueError: no such thing"]
