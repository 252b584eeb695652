"""Containers, limits and pauses of a node, on a runtime that answers from memory."""

from typing import Any

import pytest
from helpers.fake_runtime import FakeRuntime
from helpers.made_cgroups import Machine

from dltools.engine import cgroup
from dltools.engine.cri import runtime_pb2 as messages
from dltools.engine.cri.cpu_resources import pod_quota, recorded_limits, updates
from dltools.engine.cri.cri_engine import CriEngine
from dltools.engine.interface import GoneError, LocatedContainer, RefusedError
from dltools.engine.parts import Delivers, LimitChange, SetsLimits, needed
from dltools.notation.limits import Limits


@pytest.fixture
def engine(runtime: FakeRuntime) -> CriEngine:
    return CriEngine(runtime.url)


def spec(asked: dict[str, int] | None = None, **cpu: int) -> dict[str, Any]:
    """Return a verbose status: limits on record, and those that the pod asked for."""
    return {
        "runtimeSpec": {"linux": {"resources": {"cpu": cpu}}},
        "config": {"linux": {"resources": asked or {}}},
    }


def located(engine: CriEngine, id_: str, usable: float = 4.0) -> LocatedContainer:
    return LocatedContainer(engine.inspect(id_), None, usable, "0-3")


def set_limits(engine: CriEngine, id_: str, wanted: Limits, usable: float = 4.0) -> None:
    change = LimitChange(located(engine, id_, usable), wanted, lambda: True)
    needed(engine, SetsLimits).set_limits(change)


# What there is


def test_a_container_is_named_by_namespace_pod_and_container(engine, runtime) -> None:
    runtime.add("a1", name="main", pod="train-x")
    (one,) = engine.containers()
    assert (one.id, one.name, one.state) == ("a1", "lab/train-x/main", "running")
    assert engine.inspect("lab/train-x/main").id == engine.inspect("a1").id == "a1"


def test_labels_of_the_pod_and_annotations_for_us_count(engine, runtime) -> None:
    runtime.add(
        "a1",
        labels={"app": "lab", "dltools.job": "j"},
        annotations={"dltools.metric": "val loss (mean)", "other": "x"},
    )
    labels = engine.inspect("a1").labels
    assert labels == {"app": "lab", "dltools.job": "j", "dltools.metric": "val loss (mean)"}
    assert [one.id for one in engine.containers(["app=lab", "dltools.metric"])] == ["a1"]
    assert engine.containers(["other"]) == []


def test_names_select_by_expression(engine, runtime) -> None:
    runtime.add("a1", pod="train")
    runtime.add("b2", pod="serve")
    assert [one.id for one in engine.containers(names=["^lab/ser"])] == ["b2"]


def test_what_has_ended_is_not_listed_and_is_known(engine, runtime) -> None:
    runtime.add("a1")
    runtime.end("a1", 3, "Error")
    assert engine.containers() == []
    assert engine.ids() == {"a1"}
    found = engine.inspect("a1")
    assert (found.state, found.ended.exit_code, found.ended.error) == ("exited", 3, "Error")


def test_of_two_containers_of_a_name_the_running_one_is_meant(engine, runtime) -> None:
    runtime.add("a1")
    runtime.end("a1")
    runtime.add("b2")
    assert engine.inspect("lab/train/main").id == "b2"


def test_a_container_that_is_unknown_is_gone(engine) -> None:
    for name in ("a1", "lab/train/main"):
        with pytest.raises(GoneError):
            engine.inspect(name)


def test_all_pods_are_asked_for_at_once(engine, runtime) -> None:
    for number in range(5):
        runtime.add(f"a{number}", pod=f"p{number}")
    del runtime.asked[:]
    assert len(engine.containers()) == 5
    assert sorted(runtime.asked) == ["ListContainers", "ListPodSandbox"]


def test_ports_and_network_are_kubelets(engine, runtime) -> None:
    ports = '[{"containerPort":8000,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]'
    made = runtime.add("a1", annotations={})
    made.annotations["io.kubernetes.container.ports"] = ports
    runtime.pods["train"].network.ip = "10.0.0.7"
    network = engine.inspect("a1").network
    assert (network.addresses, network.exposed) == (("10.0.0.7",), frozenset({8000}))


@pytest.mark.parametrize(
    ("spec", "access"),
    [
        ({"process": {"env": []}}, (False, False)),
        ({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}}, (True, True)),
        ({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}}, (False, False)),
        (
            {
                "process": {"env": ["NVIDIA_VISIBLE_DEVICES=0"]},
                "linux": {"devices": [{"path": "/dev/nvidia0"}]},
            },
            (True, False),
        ),
    ],
)
def test_how_it_got_its_gpu(engine, runtime, spec, access) -> None:
    runtime.add("a1", info={"runtimeSpec": spec})
    found = engine.inspect("a1")
    assert (found.has_gpu, found.files_only) == access


@pytest.mark.parametrize("info", ["", "[1]", "{", "[" * 100_000])
def test_a_status_that_cannot_be_read_tells_nothing_more(runtime, info, monkeypatch) -> None:
    runtime.add("a1")
    monkeypatch.setattr(
        runtime,
        "_container",
        lambda _: messages.ContainerStatusResponse(
            status=runtime.containers["a1"], info={"info": info}
        ),
    )
    runtime.stop()
    runtime.start()
    with pytest.raises(GoneError):  # its pod is unknown
        CriEngine(runtime.url).inspect("a1")


def test_a_log_that_is_not_here_is_named(engine, runtime) -> None:
    runtime.add("a1", log_path="/nowhere/0.log")
    for read in (lambda one: list(engine.logs(one, 0.0)), lambda one: engine.follow(one, 0.0)):
        with pytest.raises(RefusedError, match=r"0\.log cannot be read here: No such file"):
            read(engine.inspect("a1"))
    runtime.add("b2", name="b")
    with pytest.raises(RefusedError, match="no folder for logs"):
        engine.follow(engine.inspect("b2"), 0.0)


# Limits


def test_the_record_is_the_runtimes_specification(engine, runtime) -> None:
    runtime.add("a1", info=spec(quota=150_000, period=100_000, shares=512))
    assert engine.inspect("a1").recorded == Limits(cpus=1.5, weight=512, memory=None)
    runtime.add("b2", name="b", info=spec(quota=-1, period=100_000))
    assert engine.inspect("b2").recorded == Limits(cpus=None, memory=None)


def test_a_cpu_list_is_kubelets_and_not_on_record(engine, runtime) -> None:
    info = spec()
    info["runtimeSpec"]["linux"]["resources"]["cpu"] = {"cpus": "0-1"}
    runtime.add("a1", info=info)
    assert engine.inspect("a1").recorded.get("cpuset") is None


@pytest.mark.parametrize(
    ("before", "wanted", "sent"),
    [
        (
            {},
            {"cpus": 0.5, "weight": 100.0},
            {"cpu_quota": 50_000, "cpu_period": 100_000, "cpu_shares": 100},
        ),
        ({"period": 50_000}, {"cpus": None}, {"cpu_quota": -1, "cpu_period": 50_000}),
        ({"period": 10_000}, {"cpus": 0.05}, {"cpu_quota": 5_000, "cpu_period": 100_000}),
    ],
    ids=["both at once", "no quota", "a small quota of a short period"],
)
def test_limits_are_sent_in_the_runtimes_fields(engine, runtime, before, wanted, sent) -> None:
    runtime.add("a1", info=spec(quota=10_000, **before))
    set_limits(engine, "a1", wanted)
    assert runtime.updates == [("a1", sent)]


@pytest.mark.parametrize("cpus", [None, 1.5])
def test_no_quota_above_that_of_the_pod_is_sent(engine, runtime, cpus) -> None:
    runtime.add("a1", info=spec({"cpu_quota": 100_000, "cpu_period": 100_000}, quota=50_000))
    with pytest.raises(RefusedError, match="its pod limits it to 1 CPUs"):
        set_limits(engine, "a1", {"cpus": cpus})
    assert runtime.updates == []


def test_no_quota_within_a_pod_of_the_same_quota_is_that_of_the_pod(engine, runtime) -> None:
    runtime.add("a1", info=spec({"cpu_quota": 100_000, "cpu_period": 100_000}, quota=50_000))
    set_limits(engine, "a1", {"cpus": None}, usable=1.0)
    assert runtime.updates == [("a1", {"cpu_quota": 100_000, "cpu_period": 100_000})]


def test_what_the_pod_asks_for_stays_known(engine, runtime) -> None:
    asked = {"cpu_quota": 200_000, "cpu_period": 100_000}
    runtime.add("a1", info=spec(asked, quota=50_000, period=100_000))
    assert pod_quota(engine.inspect("a1")) == 2.0


def test_a_restored_quota_is_that_of_before(engine, runtime) -> None:
    runtime.add("a1", info=spec(quota=50_000, period=100_000, shares=2))
    original = {"cpu_quota": 0, "cpu_period": 0, "cpu_shares": 512}
    (found,) = updates(located(engine, "a1"), {"weight": 512.0}, original)
    assert found == {"cpu_quota": -1, "cpu_period": 100_000, "cpu_shares": 512}
    assert recorded_limits(original) == Limits(cpus=None, weight=512, memory=None)


# Pauses


def test_a_pod_that_does_not_allow_it_is_not_paused(engine, runtime) -> None:
    runtime.add("a1")
    assert "dltools.pause=allow" in engine.inspect("a1").refuses.pause
    with pytest.raises(RefusedError, match="whether it has probes"):
        engine.pause("a1")


def test_a_pod_allows_pauses_by_an_annotation(engine, runtime) -> None:
    runtime.add("a1", annotations={"dltools.pause": "allow"})
    assert engine.inspect("a1").refuses.pause == ""


def test_what_is_left_of_one_that_ends_is_thawed(engine, runtime, tmp_path, monkeypatch) -> None:
    """As seen with containerd 1.6: its first process, killed, waits for others that are frozen, and
    is in the root cgroup already."""
    machine = Machine(tmp_path / "machine")
    machine.add("/kubepods/a1", 11)
    monkeypatch.setattr(engine._cgroups, "_mounts", cgroup.mounts(machine.root))
    state = machine.folder("freezer", "/kubepods/a1") / "freezer.state"
    state.write_text("FROZEN")
    info = spec()
    info["runtimeSpec"]["linux"]["cgroupsPath"] = "/kubepods/a1"
    runtime.add("a1", annotations={"dltools.pause": "allow"}, info={**info, "pid": 1 << 22})
    assert engine.inspect("a1").state == "paused"
    assert [one.state for one in engine.containers()] == ["paused"]
    engine.unpause("a1")
    assert state.read_text() == "THAWED"
    assert engine.inspect("a1").state == "running"


def test_files_are_not_copied_out(engine) -> None:
    with pytest.raises(RefusedError, match="cannot copy files out of containers"):
        needed(engine, Delivers)
