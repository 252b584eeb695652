"""Pods of a node and their resizes, by an API server that answers from memory."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
from helpers.clocks import Clock
from helpers.fake_api_server import FakeApiServer, rights_of
from helpers.tls import OPENSSL, make_authority, make_certificate

from dltools.engine.interface import GoneError, LocatedContainer, RefusedError
from dltools.engine.kubernetes.kubernetes_engine import KubernetesEngine
from dltools.engine.patience import Patience
from dltools.engine.registry import host_address, open_engine
from dltools.errors import AccessError, ConfigError, UnavailableError

pytestmark = pytest.mark.slow  # the client takes 0.4 s to import


def located(engine: KubernetesEngine, id_: str = "c1") -> LocatedContainer:
    return LocatedContainer(engine.inspect(id_), None, float(engine.cpus), "0-3")


def set_quota(engine: KubernetesEngine, cpus: float | None, id_: str = "c1") -> None:
    engine.set_limits(located(engine, id_), {"cpus": cpus}, lambda: True)


# What there is


def test_a_node_has_its_running_containers(engine: KubernetesEngine, server: FakeApiServer) -> None:
    server.add("train", annotations={"dltools.metric": "val loss", "other": "x"})
    server.add("done", container_id="c2")["status"]["phase"] = "Succeeded"
    server.add("elsewhere", container_id="c3")["spec"]["nodeName"] = "n2"
    (found,) = engine.containers()
    assert (found.id, found.name, found.state) == ("uid-train_main", "lab/train/main", "running")
    assert engine.containers(["dltools.metric"], ["^lab/train/"]) == [found]
    assert engine.containers(["other"]) == engine.containers([], ["^main"]) == []
    assert engine.ids() == {"uid-train_main"}
    assert engine.version == "kubelet v1.35.0"
    assert (engine.host, engine.cpus, engine.memory) == ("n1", 4, 8_192_000_000)
    for gone in ("c2", "c3"):
        with pytest.raises(GoneError):
            engine.inspect(gone)


def test_a_container_is_known_by_its_place_when_it_is_started_again(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add()
    for id_ in ("c1", "uid-train_main", "lab/train/main"):
        assert engine.inspect(id_).id == "uid-train_main"
        assert engine.known_as(id_) == "uid-train_main"
    server.restart("train", "c9")
    assert engine.known_as("c9") == engine.known_as("c1") == "uid-train_main"
    server.restart("train", "c10")
    with pytest.raises(GoneError):
        engine.inspect("c1")
    assert engine.known_as("c1") == "c1"


def test_another_pod_of_the_same_name_is_another(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add()
    assert engine.inspect("c1").id == "uid-train_main"
    server.add(container_id="c2")["metadata"]["uid"] = "other"
    with pytest.raises(GoneError):
        engine.inspect("uid-train_main")


# Quotas


def test_a_burstable_pod_keeps_what_it_requests(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add(limit="2", request="500m")
    set_quota(engine, 0.75)
    assert server.patches() == [{"limits": {"cpu": "750m"}}]
    assert server.actual() == {"limits": {"cpu": "750m"}, "requests": {"cpu": "500m"}}
    assert engine.inspect("c1").recorded.cpus == 0.75


def test_a_guaranteed_pod_stays_guaranteed(engine: KubernetesEngine, server: FakeApiServer) -> None:
    server.add(limit="2", request="2", memory="1Gi")
    before = engine.inspect("c1").limit_fields
    set_quota(engine, 0.5)
    lowered, own = ({"cpu": cpu, "memory": "1Gi"} for cpu in ("500m", "2"))
    assert server.actual() == {"limits": lowered, "requests": lowered}
    assert server.pods["lab", "train"]["status"]["qosClass"] == "Guaranteed"
    engine.restore_limits(located(engine), before, {}, lambda: True)
    assert server.actual() == {"limits": own, "requests": own}


def test_no_quota_is_all_cpus_of_the_node(engine: KubernetesEngine, server: FakeApiServer) -> None:
    server.add()
    set_quota(engine, None)
    assert server.specified()["limits"] == {"cpu": "4000m"}


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ({"limit": "", "request": ""}, "its pod is BestEffort"),
        ({"limit": ""}, "it has no limit of CPUs, and Kubernetes would not take one away again"),
        ({"request": "800m"}, "its pod requests 0.8 CPUs, and a limit cannot be below that"),
        (
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            "its resizePolicy would start it again",
        ),
    ],
)
def test_what_kubernetes_would_refuse_is_not_sent(
    engine: KubernetesEngine, server: FakeApiServer, pod: dict[str, object], said: str
) -> None:
    server.add(**pod)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match=said):
        set_quota(engine, 0.6)
    assert server.patches() == []


def test_resources_of_a_whole_pod_are_not_touched(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add()["spec"]["resources"] = {"limits": {"cpu": "2"}}
    with pytest.raises(RefusedError, match="its pod has resources of its own"):
        set_quota(engine, 1.0)


def test_a_kubelet_that_cannot_resize_is_not_asked(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    del server.add()["status"]["containerStatuses"][0]["resources"]
    with pytest.raises(RefusedError, match=r"Kubernetes 1\.33 or later is needed"):
        set_quota(engine, 1.0)
    assert server.patches() == []


@pytest.mark.parametrize("kubelet", ["deferred", "infeasible"])
def test_what_kubelet_does_not_set_is_taken_back(
    engine: KubernetesEngine, server: FakeApiServer, kubelet: str
) -> None:
    server.add()
    server.kubelet = kubelet
    reason = rf"kubelet does not resize it \({kubelet.capitalize()}\): Node didn't have enough"
    with pytest.raises(RefusedError, match=reason):
        set_quota(engine, 1.0)
    assert [one["limits"] for one in server.patches()] == [{"cpu": "1000m"}, {"cpu": "2"}]
    assert server.specified() == server.actual()
    assert server.pods["lab", "train"]["status"]["conditions"] == []


def test_a_kubelet_that_is_away_is_waited_for_once(
    engine: KubernetesEngine, server: FakeApiServer, clock: Clock
) -> None:
    server.add()
    server.kubelet = "away"
    with pytest.raises(RefusedError, match="kubelet has not resized it in 30 s"):
        set_quota(engine, 1.0)
    assert server.specified()["limits"] == {"cpu": "2"}
    server.add("other", container_id="c2")
    with pytest.raises(RefusedError, match="kubelet of n1 has not set what it was given before"):
        set_quota(engine, 1.0, "c2")
    clock.now += 61.0
    server.kubelet = "done"
    set_quota(engine, 1.0, "c2")
    assert server.actual("other")["limits"] == {"cpu": "1000m"}


def test_a_resize_of_somebody_else_is_not_cut_into(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add()["status"]["conditions"] = [
        {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "full"}
    ]
    with pytest.raises(RefusedError, match=r"an earlier resize of its pod is not done: .*full"):
        set_quota(engine, 1.0)
    assert server.patches() == []


def test_an_undo_that_is_deferred_stays_asked_for(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add(limit="2", request="2", memory="1Gi")
    before = engine.inspect("c1").limit_fields
    set_quota(engine, 0.5)
    server.kubelet = "deferred"
    with pytest.raises(RefusedError, match=r"the pod asks for its own again, and kubelet .*Defer"):
        engine.restore_limits(located(engine), before, {}, lambda: True)
    assert server.specified()["limits"] == {"cpu": "2", "memory": "1Gi"}


# Answers of the server


def test_a_pod_that_changes_meanwhile_is_read_again(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add()
    server.conflicts = 2
    set_quota(engine, 1.0)
    assert len(server.patches()) == 3
    assert server.actual()["limits"] == {"cpu": "1000m"}
    server.conflicts = 9
    with pytest.raises(RefusedError, match="its pod changes all the time: Operation cannot be"):
        set_quota(engine, 1.5)


def test_what_would_change_the_class_of_a_pod_is_the_server_s_to_refuse(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add(limit="2", request="1", memory="1Gi")
    with pytest.raises(RefusedError, match="Pod QOS Class may not change as a result of resizing"):
        set_quota(engine, 1.0)
    assert server.specified()["limits"] == {"cpu": "2", "memory": "1Gi"}


def test_a_server_before_1_33_is_named(engine: KubernetesEngine, server: FakeApiServer) -> None:
    server.add()
    server.has_resize = False
    with pytest.raises(RefusedError, match=r"has no pods/resize: Kubernetes 1\.33 or later"):
        set_quota(engine, 1.0)


def test_a_missing_right_is_told(engine: KubernetesEngine, server: FakeApiServer) -> None:
    server.add()
    said = 'pods "train" is forbidden: User "me" cannot patch resource "pods/resize"'
    server.errors["PATCH", "/resize"] = (403, said)
    with pytest.raises(RefusedError, match="cannot patch resource"):
        set_quota(engine, 1.0)
    server.errors["GET", "/nodes/n1"] = (403, 'nodes "n1" is forbidden')
    with pytest.raises(AccessError, match='nodes "n1" is forbidden'):
        KubernetesEngine("n1")


@pytest.mark.usefixtures("server")
def test_a_user_whom_the_server_does_not_know_is_told(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(config.read_text().replace("secret", "wrong"))
    with pytest.raises(AccessError, match="does not know this user: Unauthorized"):
        KubernetesEngine("n1")


@pytest.mark.usefixtures("server")
def test_a_node_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match='kubernetes:n7: no node of this name: nodes "n7" not'):
        KubernetesEngine("n7")


def test_a_server_that_is_away_is_waited_for(server: FakeApiServer) -> None:
    server.errors["GET", "/nodes/n1"] = (503, "the server is starting")
    told: list[str] = []

    def back(error: UnavailableError) -> None:
        told.append(str(error))
        server.errors.clear()

    assert KubernetesEngine("n1", Patience(5.0, back)).host == "n1"
    assert told[0].endswith("cannot answer now: the server is starting")
    server.stop()
    with pytest.raises(UnavailableError, match=r"no API server answers at http://127\.0\.0\.1:"):
        KubernetesEngine("n1")


@pytest.mark.skipif(OPENSSL is None, reason="needs openssl")
def test_the_certificates_of_a_kubeconfig_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, own = tmp_path / "authority", tmp_path / "own"
    make_authority(authority)
    make_certificate(authority, own, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own / "cert.pem", own / "key.pem")
    server = FakeApiServer(server=context)
    try:
        known = {"certificate-authority": str(own / "ca.pem")}
        path = server.kubeconfig(tmp_path / "kubeconfig", **known)
        monkeypatch.setenv("KUBECONFIG", str(path))
        assert KubernetesEngine("n1").host == "n1"
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "other")))
        with pytest.raises(UnavailableError, match="certificate"):
            KubernetesEngine("n1")
    finally:
        server.stop()


def test_the_rights_of_the_sample_are_those_that_are_used(
    engine: KubernetesEngine, server: FakeApiServer
) -> None:
    server.add()
    before = engine.inspect("c1").limit_fields
    set_quota(engine, 1.0)
    engine.restore_limits(located(engine), before, {}, lambda: True)
    assert server.used_rights() == rights_of("resize.yaml")


REAL = os.environ.get("DLTOOLS_KUBERNETES_POD", "")


@pytest.mark.engine
@pytest.mark.skipif(
    not (REAL and os.environ.get("KUBECONFIG")),
    reason="no API server: set KUBECONFIG and DLTOOLS_KUBERNETES_POD=NODE/NAMESPACE/POD/CONTAINER",
)
def test_a_real_server_resizes_a_pod_and_puts_it_back() -> None:
    node, _, name = REAL.partition("/")
    real = KubernetesEngine(node)
    before = real.inspect(name)
    assert before.recorded.cpus is not None, "give its container a limit of CPUs"
    try:
        set_quota(real, before.recorded.cpus * 0.9, name)
        assert real.inspect(name).recorded.cpus == pytest.approx(before.recorded.cpus * 0.9, 0.01)
    finally:
        real.restore_limits(located(real, name), before.limit_fields, {}, lambda: True)
    assert real.inspect(name).limit_fields == before.limit_fields


# Addresses


@pytest.mark.usefixtures("server")
def test_an_address_names_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_engine(host_address("kubernetes:n1")).host == "n1"
    monkeypatch.delenv("NODE_NAME", raising=False)
    for wrong in ("kubernetes:", "kubernetes:/n1", "kubernetes:N 1"):
        with pytest.raises(ConfigError, match="no name of a node; write kubernetes:NODE"):
            host_address(wrong)
    monkeypatch.setenv("NODE_NAME", "n1")
    assert open_engine(host_address("kubernetes:")).host == "n1"


def test_without_a_configuration_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="no API server is known; set KUBECONFIG"):
        KubernetesEngine("n1")
    (tmp_path / "broken").write_text("clusters: 7")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "broken"))
    with pytest.raises(ConfigError, match="no API server is known; set KUBECONFIG"):
        KubernetesEngine("n1")


def test_it_is_no_engine_to_measure_by(engine: KubernetesEngine, server: FakeApiServer) -> None:
    server.add()
    for ask in (
        lambda: engine.logs(engine.inspect("c1"), 0.0),
        lambda: engine.follow(engine.inspect("c1"), 0.0),
        lambda: engine.events(0.0),
    ):
        with pytest.raises(RefusedError):
            ask()
