"""What differs from Docker behind the same API, on an engine that is not there."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from helpers.fake_engine import ID, FakeEngine, action, plan_of

from dltools.actions.plans import Op, Status
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.refusals import is_own, unsupported
from dltools.apply.turns import Rotation
from dltools.engine.address import Address
from dltools.engine.docker import changes, http
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.interface import Container, Engine, GoneError, RefusedError
from dltools.engine.journal import Journal
from dltools.engine.limits.cpu_limits import Locator, settings_in_force
from dltools.engine.parts import LimitChange, Original, Pauses, SetsLimits, needed
from dltools.engine.podman import engine as podman_engine
from dltools.engine.podman.engine import PodmanEngine, PodmanLimits
from dltools.engine.registry import host_address, open_engine
from dltools.errors import ConfigError, UnavailableError
from dltools.notation.limits import Limits


class FakePodman(FakeEngine):
    """Podman, as far as it differs."""

    rootless = False
    cgroups: tuple[str, list[str]] = ("v1", ["cpu", "cpuset"])
    unknown: tuple[str, ...] = ()
    database = "sqlite"
    runtime = "runc"
    lost_races: Sequence[str] = ()
    events: Sequence[tuple[str, float]] = ()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.endswith("/libpod/info"):
            version, controllers = self.cgroups
            host = {
                "cgroupVersion": version,
                "cgroupControllers": controllers,
                "databaseBackend": self.database,
                "ociRuntime": {"name": self.runtime},
                "cgroupManager": "systemd",
                "security": {"rootless": self.rootless},
            }
            return 200, {"host": host, "store": {"graphRoot": "/var/lib/containers/storage"}}
        if path.endswith(self.unknown) and self.unknown:
            return 404, b"Not Found\n"
        if "/libpod/" in path and path.endswith("/update"):
            self.updates.append(body)
            known = {own: docker for docker, own in podman_engine._NAMES.items()}
            if self.state == "running":  # else it shows what its last run had
                self.first.host_config |= {known[own]: value for own, value in body["cpu"].items()}
            return 201, f"{ID}\n".encode()
        if path.endswith("/events"):
            told = [
                {"Action": action, "Actor": {"ID": ID}, "timeNano": int(time * 1e9)}
                for action, time in self.events
            ]
            return 200, "\n".join(map(json.dumps, told)).encode()
        if path.endswith("/pause") and self.lost_races:
            said, *self.lost_races = self.lost_races
            return 500, {"message": said}
        if path.endswith("/pause") and self.state == "paused":
            return 500, {"message": "already paused: container state improper"}
        return super().answer(method, path, body)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakePodman]:
    with FakePodman(tmp_path / "fake.sock") as made:
        yield made


def opened(fake: FakePodman, server: str = "Libpod/5.4.2 (linux)") -> Engine:
    fake.server = server
    return open_engine(Address(fake.url, "--host"))


def test_the_first_answer_says_which_engine_it_is(fake) -> None:
    assert type(open_engine(Address(fake.url, "--host"))) is DockerEngine
    assert [one.partition("?")[0] for one in fake.asked] == ["GET /version", "GET /v1.41/info"]
    assert isinstance(opened(fake), PodmanEngine)
    assert isinstance(open_engine(Address(fake.url, "--host"), patience_s=1.0), PodmanEngine)
    assert opened(fake).version.startswith("Podman")


def test_it_is_known_again_although_its_id_changes(fake) -> None:
    fake.id = "first"
    one = opened(fake)
    fake.id = "second"
    assert one.id == opened(fake).id
    assert "/var/lib/containers/storage" in one.id


def test_lists_ask_for_paused_containers_too(fake) -> None:
    engine = opened(fake)
    fake.asked.clear()
    engine.containers(["a=b"], ["x"])
    engine.containers()
    asked = [parse_qs(urlsplit(one.partition(" ")[2]).query)["filters"][0] for one in fake.asked]
    states = ["running", "paused"]
    first, second = map(json.loads, asked)
    assert first == {"label": ["a=b"], "name": ["x"], "status": states}
    assert second == {"status": states}


def test_limits_are_set_by_its_own_api(fake) -> None:
    fields = {"CpuPeriod": 100_000, "CpuQuota": -1, "CpusetCpus": "0-3"}
    needed(opened(fake), PodmanLimits).update(ID, fields)
    assert fake.updates == [{"cpu": {"period": 100_000, "quota": -1, "cpus": "0-3"}}]


def test_no_quota_is_set_with_its_period(fake) -> None:
    """crun of Debian 12 leaves cpu.max as it is where the period is missing."""
    engine = opened(fake)
    change = LimitChange(Locator(engine).locate_by_id(ID), {"cpus": None}, lambda: True)
    needed(engine, SetsLimits).set_limits(change)
    assert fake.updates == [{"cpu": {"period": 100_000, "quota": -1}}]


def test_its_quota_is_no_nano_cpus(fake) -> None:
    fake.host_config |= {"NanoCpus": 1_500_000_000, "CpuQuota": 150_000, "CpuPeriod": 100_000}
    container = opened(fake).inspect(ID)
    assert "NanoCpus" not in container.limit_fields
    assert container.recorded["cpus"] == 1.5
    fake.host_config |= {"NanoCpus": -10_000, "CpuQuota": -1}
    assert opened(fake).inspect(ID).recorded["cpus"] is None


@pytest.mark.parametrize("server", ["Libpod/4.3.1 (linux)", "Docker/20.10.24 (linux)"])
@pytest.mark.parametrize("losses", [1, 3, 4])
def test_a_pause_that_lost_a_race_is_tried_again(fake, server, losses, replace_sleep) -> None:
    """What runc says where processes start faster than it freezes."""
    replace_sleep(changes, lambda _: None)
    said = "`/usr/bin/runc pause 4f2a` failed: exit status 1"
    if server.startswith("Docker"):
        said = "Cannot pause container 4f2a: OCI runtime pause failed: unable to freeze: unknown"
    engine = opened(fake, server)
    fake.lost_races = [said] * losses
    if losses > 3:
        with pytest.raises(RefusedError, match=r"freeze|exit status"):
            needed(engine, Pauses).pause(ID)
    else:
        needed(engine, Pauses).pause(ID)
    assert fake.state == ("running" if losses > 3 else "paused")


def test_a_second_pause_is_done(fake) -> None:
    engine = opened(fake)
    needed(engine, Pauses).pause(ID)
    needed(engine, Pauses).pause(ID)
    assert fake.state == "paused"
    fake.faults = {"POST /pause": 500}
    fake.state = "running"
    with pytest.raises(RefusedError):
        needed(engine, Pauses).pause(ID)


def test_a_request_that_is_unknown_is_no_container_that_is_gone(fake) -> None:
    engine = opened(fake)
    fake.unknown = ("/update",)
    assert isinstance(engine, PodmanEngine)
    with pytest.raises(RefusedError, match="does not know this request: Not Found"):
        needed(engine, PodmanLimits).update(ID, {"CpuShares": 2})
    fake.is_there = False
    with pytest.raises(GoneError):
        engine.inspect(ID)


def test_it_tells_no_past(fake) -> None:
    engine = opened(fake)
    fake.asked.clear()
    assert engine.past_events(0, 1) == []
    assert fake.asked == []


def test_a_stream_begins_where_it_was_asked_to(fake) -> None:
    """As seen in 4.3 and 5.4: some events from before the time come first."""
    fake.ends_events = True
    fake.events = [("die", 9.9), ("start", 10.0), ("die", 12.5)]
    found = [(one.action, one.nanos) for one in opened(fake).events(10.0)]
    assert found == [("start", 10_000_000_000), ("exit", 12_500_000_000)]


@pytest.mark.parametrize(
    ("server", "keeps"),
    [("Libpod/4.3.1 (linux)", False), ("Libpod/5.4.2 (linux)", True), ("Libpod/x", False),
     ("Libpod/5.10.0-dev (linux)", True), ("Libpod/6.0.1 (linux)", True)],
)  # fmt: skip
def test_a_restart_keeps_limits_from_version_5_4_on(fake, server, keeps) -> None:
    assert opened(fake, server).capabilities.keeps is keeps
    fake.database = "boltdb"
    assert opened(fake, server).capabilities.keeps is False


@pytest.mark.parametrize("server", ["Libpod/5.1.0 (linux)", "Libpod/5.3.2 (linux)"])
def test_a_version_that_forgets_other_limits_sets_none(fake, server) -> None:
    engine = opened(fake, server)
    refused = unsupported(action({"weight": 2.0}), engine.host, engine.capabilities)
    assert refused == (
        "the engine of host fake-host cannot set cpu_weight: Podman 5.1 to 5.3 forgets a "
        "container's other limits in an update: 5.4 is needed"
    )
    assert engine.capabilities.pauses


ROOTLESS = "rootless, and needs cgroup version 2 with the controllers cpu and cpuset delegated"


@pytest.mark.parametrize(
    ("cgroups", "limits", "pauses"),
    [
        (("v1", ["cpu", "cpuset"]), set(), False),
        (("v2", ["memory", "pids"]), set(), True),
        (("v2", ["cpu", "memory", "pids"]), {"cpus", "weight"}, True),
        (("v2", ["cpuset", "cpu"]), {"cpus", "weight", "cpuset"}, True),
    ],
)
def test_without_root_it_can_do_what_is_delegated(fake, cgroups, limits, pauses) -> None:
    fake.rootless, fake.cgroups = True, cgroups
    engine = opened(fake)
    can = engine.capabilities
    assert (can.limits, can.pauses) == (limits, pauses)
    refused = unsupported(action({"cpuset": "0"}), engine.host, can)
    assert "cpuset" in limits or (refused and ROOTLESS in refused)


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_weight_in_its_own_scope_is_never_sent(fake, tmp_path, monkeypatch, is_alone) -> None:
    """As crun does it under systemd, on version 2."""
    monkeypatch.setattr(podman_engine, "is_alone_in_scope", lambda *_: is_alone)
    fake.first.pid = 1
    engine = opened(fake)
    container = engine.inspect(ID)
    missing = engine.capabilities.missing(container)
    actuator = EngineActuator(engine, Journal(tmp_path / "j"), Rotation(engine, tmp_path / "r"))
    (weighed,) = actuator.apply(plan_of(action({"weight": 2.0})), lambda _: None)
    (capped,) = actuator.apply(plan_of(action({"cpus": 1.0})), lambda _: None)
    assert missing == (["cpu_weight", "move"] if is_alone else ["move"])
    assert weighed.status is (Status.SKIPPED if is_alone else Status.APPLIED)
    assert (weighed.error == podman_engine._ALONE) is is_alone
    assert capped.status is Status.APPLIED
    sent = [*({"shares": 2} for _ in range(not is_alone)), {"period": 100_000, "quota": 100_000}]
    assert [one["cpu"] for one in fake.updates] == sent


@pytest.mark.parametrize("rootless", [True, False])
def test_from_elsewhere_the_runtime_tells_of_such_scopes(rootless) -> None:
    with FakePodman.over_tcp("far") as fake:
        fake.server, fake.runtime, fake.rootless = "Libpod/5.4.2 (linux)", "crun", rootless
        fake.cgroups = "v2", ["cpu", "cpuset"]
        can = open_engine(Address(fake.url, "--host")).capabilities
        assert can.limits == {"cpus", "cpuset"}
        fake.cgroups = "v1", ["cpu", "cpuset"]
        can = open_engine(Address(fake.url, "--host")).capabilities
        assert ("weight" in can.limits) is not rootless


def test_from_elsewhere_an_old_one_is_looked_at_alone() -> None:
    with FakePodman.over_tcp("far") as fake:
        fake.server = "Libpod/4.3.1 (linux)"
        can = open_engine(Address(fake.url, "--host")).capabilities
        refused = unsupported(action({"cpus": 1.0}), "fake-host", can)
        assert refused == (
            "the engine of host fake-host cannot set cpus: this Podman does not say what is in "
            "force: run dl-apply on its host"
        )
        fake.server = "Libpod/5.4.2 (linux)"
        can = open_engine(Address(fake.url, "--host")).capabilities
        assert unsupported(action({"cpus": 1.0}), "fake-host", can) is None
        moved = unsupported(action({"host": "b"}, Op.MIGRATE), "fake-host", can)
        assert moved == (
            "the engine of host fake-host cannot move containers: dl-apply moves containers "
            "only between Docker engines"
        )


def test_who_does_not_answer_is_called_podman(tmp_path) -> None:
    with pytest.raises(UnavailableError, match=r"no Podman answers at .*does podman.socket run"):
        open_engine(Address(f"unix://{tmp_path}/podman.sock", "--host"))


def test_where_docker_is_not_podman_may_be(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(http, "PODMAN_SOCKET", tmp_path)
    with pytest.raises(UnavailableError, match=f"Podman is here: --host unix://{tmp_path}$"):
        open_engine(Address(f"unix://{tmp_path}/docker.sock", "--host"))


@pytest.mark.parametrize("text", ["garbage", "tcp://x", "nope://x", "/run/podman.sock"])
def test_what_is_no_address_is_refused(text) -> None:
    with pytest.raises(ConfigError, match="no address of a Docker engine"):
        host_address(text)


def test_it_does_not_change_the_container_that_it_runs_in(tmp_path) -> None:
    info = tmp_path / "proc" / "self" / "mountinfo"
    info.parent.mkdir(parents=True)
    storage = f"/lib/containers/storage/overlay-containers/{ID}/userdata/hostname"
    info.write_text(f"1 2 0:1 {storage} /etc/hostname rw - ext4 /dev/vda rw\n")
    assert is_own(Container(ID, "own"), tmp_path)
    assert not is_own(Container("e" * 64, "other"), tmp_path)


def test_what_is_set_on_a_stopped_container_counts_although_it_is_not_shown(fake) -> None:
    fake.state = "exited"
    fake.host_config |= {"CpuQuota": 40_000, "CpuPeriod": 100_000, "CpusetCpus": "0"}
    engine = opened(fake)
    located = Locator(engine).locate_by_id(ID)
    original = {"CpuQuota": 0, "CpuPeriod": 0, "CpuShares": 0, "CpusetCpus": ""}
    wanted: Limits = {"weight": 1024.0, "cpuset": None}
    change = LimitChange(located, wanted, lambda: True, Original(original, {}))
    needed(engine, SetsLimits).set_limits(change)
    found = settings_in_force(Locator(engine).locate_by_id(ID))
    assert found == {"cpus": None, "weight": 1024.0, "cpuset": None}
    assert len(fake.updates) == 1
    needed(opened(fake, "Libpod/4.3.1 (linux)"), SetsLimits).set_limits(change)
    assert len(fake.updates) == 1, "it keeps no limits: there is nothing to restore"
    fake.started = "2020-01-01T00:00:01.000000001Z"
    assert settings_in_force(Locator(engine).locate_by_id(ID))["cpus"] == 0.4
