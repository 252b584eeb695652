"""What only a real API server, Job controller and kubelet can show: see tests/engines/kubernetes.

Its Kubernetes is older than resizes of pods and moves of Jobs: both must be refused in one line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.plans import plan, update
from contract.subject import MEANT
from helpers.api_rules import merged
from helpers.cluster_pods import SAMPLES, ClusterPods
from helpers.containers import eventually
from helpers.fake_api_server import rights_of
from helpers.tools import Tools, complaint, records
from kubernetes import client

from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.kubernetes.api_server import NO_RESIZE, ApiServer, ConflictError
from dltools.engine.kubernetes.jobs import Jobs
from dltools.engine.kubernetes.kubernetes_engine import KubernetesEngine
from dltools.engine.patience import Patience
from dltools.errors import AccessError, ConfigError, UnavailableError
from dltools.labels import PLACED
from dltools.plan.records import Op

KUBECONFIG = os.environ.get("KUBECONFIG", "")
CPUS = {"limits": {"cpu": "300m"}, "requests": {"cpu": "100m"}}
IDLE = "while :; do sleep 1; done"
CHECKPOINT = {"dltools.checkpoint": "/ckpt/model.pt"}

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        "kubernetes" not in MEANT or not KUBECONFIG, reason="DLTOOLS_CONTRACT names no kubernetes"
    ),
]


@pytest.fixture(scope="module")
def token(cluster: ClusterPods) -> str:
    """That of the account of samples/kubernetes, with the rights that its manifests give."""
    return cluster.give_rights("resize.yaml", "move.yaml")


@pytest.fixture
def account(
    cluster: ClusterPods, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tools are that account."""
    path = cluster.write_kubeconfig(tmp_path / "kubeconfig", token)
    monkeypatch.setenv("KUBECONFIG", str(path))


@pytest.fixture(scope="module")
def trainer(cluster: ClusterPods) -> Any:
    return cluster.start("trainer", IDLE, resources=CPUS, annotations={"dltools.metric": "loss"})


class Target:
    """A container as plans name it."""

    def __init__(self, engine: KubernetesEngine, name: str) -> None:
        found = engine.inspect(name)
        self.id, self.name, self.engine = found.id, found.name, engine


# Rights


def test_the_account_may_what_the_manifests_say_and_no_more(
    cluster: ClusterPods, token: str, tmp_path: Path
) -> None:
    path = cluster.write_kubeconfig(tmp_path / "kubeconfig", token)
    given = rights_of("resize.yaml", "move.yaml")
    kinds = {kind for kind, _ in given} | {"secrets", "pods/exec", "pods/status", "configmaps"}
    for kind in sorted(kinds):
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
            assert _may(path, verb, kind, cluster.namespace) == ((kind, verb) in given), (
                kind,
                verb,
            )


def _may(kubeconfig: Path, verb: str, kind: str, namespace: str) -> bool:
    from kubernetes import config

    resource, _, sub = kind.partition("/")
    asked = {
        "verb": verb,
        "resource": resource,
        "subresource": sub,
        "group": "batch" if resource == "jobs" else "",
        "namespace": namespace,
    }
    with config.new_client_from_config(str(kubeconfig)) as connection:
        review = client.AuthorizationV1Api(connection).create_self_subject_access_review(
            {"spec": {"resourceAttributes": asked}}
        )
    return bool(review.status.allowed)


@pytest.mark.parametrize("name", ["dltools.yaml", "resize.yaml", "move.yaml"])
def test_the_manifests_are_taken(cluster: ClusterPods, token: str, name: str) -> None:
    del token  # their namespace is there
    said = cluster.kubectl("apply", "--dry-run=server", "-f", str(SAMPLES / name))
    assert said.count("server dry run") == len(said.splitlines())


def test_who_has_no_rights_is_told_in_a_line(
    cluster: ClusterPods, tool: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cluster.write_kubeconfig(tmp_path / "kubeconfig", cluster.account("nobody"))
    monkeypatch.setenv("KUBECONFIG", str(path))
    done = tool("dl-probe", "--host", "kubernetes:n1")
    assert done.returncode == 77
    user = f"system:serviceaccount:{cluster.namespace}:nobody"
    said = complaint(done.stderr)
    assert f'nodes "n1" is forbidden: User "{user}" cannot get resource "nodes"' in said


def test_whom_the_server_does_not_know_is_told(
    cluster: ClusterPods, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.write_kubeconfig(tmp_path / "a", "wrong")))
    with pytest.raises(AccessError, match="does not know this user: Unauthorized"):
        KubernetesEngine("n1")


def test_a_server_with_another_certificate_is_not_trusted(
    cluster: ClusterPods, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cluster.write_kubeconfig(tmp_path / "a", token)
    text = path.read_text().replace("certificate-authority-data", "unknown")
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(UnavailableError, match="certificate"):
        KubernetesEngine("n1")


@pytest.mark.usefixtures("account")
def test_a_node_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match='kubernetes:n7: no node of this name: nodes "n7" not'):
        KubernetesEngine("n7")


# What there is


@pytest.mark.usefixtures("account", "trainer")
def test_a_node_has_its_pods(cluster: ClusterPods, tool: Tools) -> None:
    only = ("--name", f"^{cluster.namespace}/trainer/")
    rows = records(tool("dl-probe", "--host", "kubernetes:n1", *only, "--format", "jsonl").stdout)
    (row,) = (one for one in rows if one["kind"] == "container")
    assert row["container_name"] == f"{cluster.namespace}/trainer/main"
    assert row["cpu_limit_cores"] == 0.3
    (node,) = (one for one in rows if one["kind"] == "node")
    assert (node["host"], node["cpu_count"]) == ("n1", os.cpu_count())


@pytest.mark.usefixtures("account")
def test_a_container_is_known_by_the_runtime_s_id_and_lasts(
    cluster: ClusterPods, trainer: Any
) -> None:
    engine = KubernetesEngine("n1")
    by_name = engine.inspect(f"{cluster.namespace}/trainer/main")
    assert engine.inspect(cluster.container_id("trainer")).id == by_name.id
    assert by_name.id == f"{trainer.metadata.uid}_main"
    assert by_name.labels["dltools.metric"] == "loss"
    with pytest.raises(GoneError):
        engine.inspect("lab/nothing/main")


@pytest.mark.usefixtures("account")
def test_a_container_that_kubelet_starts_again_is_the_same(cluster: ClusterPods) -> None:
    cluster.start("failing", "sleep 2; exit 1", resources=CPUS, restartPolicy="Always")
    first, engine = cluster.container_id("failing"), KubernetesEngine("n1")
    id_ = engine.inspect(first).id
    second = eventually(
        lambda: cluster.container_id("failing"), lambda found: found not in ("", first), seconds=60
    )
    assert engine.known_as(second) == engine.known_as(first) == id_


# Resizes


@pytest.mark.usefixtures("account", "trainer")
def test_a_kubelet_before_1_33_is_not_asked_to_resize(
    cluster: ClusterPods, tool: Tools, state: Path
) -> None:
    engine = KubernetesEngine("n1")
    target: Any = Target(engine, f"{cluster.namespace}/trainer/main")
    done = tool("dl-apply", "--host", "kubernetes:n1", input=update(target, target, cpus=0.2))
    (result,) = records(done.stdout)
    assert (done.returncode, result["status"]) == (1, "failed")
    assert "does not resize pods: Kubernetes 1.33 or later is needed" in result["error"]
    assert cluster.pod("trainer").spec.containers[0].resources.limits == {"cpu": "300m"}
    assert list((state / "journal").glob("*")) == []


@pytest.mark.usefixtures("account", "trainer")
def test_a_server_before_1_33_has_no_resizes(cluster: ClusterPods) -> None:
    server = ApiServer(Patience(0.0))
    pod = server.pod(cluster.namespace, "trainer")
    with pytest.raises(RefusedError) as refused:
        server.resize(pod, "main", {"limits": {"cpu": "200m"}})
    assert str(refused.value) == NO_RESIZE


def test_without_the_right_to_resize_that_is_told(
    cluster: ClusterPods, trainer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cluster.write_kubeconfig(tmp_path / "kubeconfig", cluster.account("reader"))
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(RefusedError, match='cannot patch resource "pods/resize"'):
        ApiServer(Patience(0.0)).resize(trainer, "main", {"limits": {"cpu": "200m"}})


# Jobs


@pytest.fixture
def job(cluster: ClusterPods, request: pytest.FixtureRequest) -> Iterator[str]:
    """The id of a Job whose pod runs."""
    name = f"job-{abs(hash(request.node.name)) % 10**6}"
    cluster.start_job(name, IDLE)
    yield f"{cluster.namespace}/{name}"
    cluster.batch.delete_namespaced_job(name, cluster.namespace, propagation_policy="Background")


@pytest.mark.usefixtures("account")
def test_the_pod_of_a_job_is_not_moved_before_1_36(
    cluster: ClusterPods, tool: Tools, tmp_path: Path
) -> None:
    cluster.add_volume("data", tmp_path / "data")
    cluster.start_job("moved", IDLE, annotations=CHECKPOINT, claims={"data": "/ckpt"})
    job = f"{cluster.namespace}/moved"
    if not _has_node(cluster, "n2"):
        cluster.core.create_node(_node("n2"))
    engine = KubernetesEngine("n1")
    (container,) = (one for one in map(engine.inspect, engine.ids()) if one.service_id == job)
    target: Any = Target(engine, container.name)
    hosts = ("--host", "kubernetes:n1", "--host", "kubernetes:n2")
    order = plan(target, (Op.MIGRATE, target, {})).replace(b'"elsewhere"', b'"n2"')
    done = tool("dl-apply", *hosts, input=order)
    (result,) = records(done.stdout)
    assert result["status"] == "skipped"
    assert "its API server is of Kubernetes 1.20" in result["error"]
    assert "\n" not in result["error"]


@pytest.mark.usefixtures("account")
def test_annotations_of_a_job_come_and_go(cluster: ClusterPods, job: str) -> None:
    jobs, name = Jobs(ApiServer(Patience(0.0))), job.partition("/")[2]
    before = cluster.batch.read_namespaced_job(name, cluster.namespace)
    jobs.change(job, labels={PLACED: "node.id==n1"})
    assert jobs.service(job).labels[PLACED] == "node.id==n1"
    jobs.change(job, labels={PLACED: None})
    after = cluster.batch.read_namespaced_job(name, cluster.namespace)
    assert (after.metadata.annotations or {}) == (before.metadata.annotations or {})
    assert after.spec == before.spec


@pytest.mark.usefixtures("account")
def test_the_node_of_a_job_that_runs_is_refused_in_a_line(job: str) -> None:
    server = ApiServer(Patience(0.0))
    found = server.job(*job.split("/"))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    patch = {"spec": {"template": {"spec": {"affinity": {"nodeAffinity": required}}}}}
    with pytest.raises(RefusedError, match="field is immutable") as refused:
        server.patch_job(found, patch)
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("account")
def test_a_job_that_somebody_has_changed_is_a_conflict(cluster: ClusterPods, job: str) -> None:
    server, name = ApiServer(Patience(0.0)), job.partition("/")[2]
    stale = server.job(*job.split("/"))
    cluster.batch.patch_namespaced_job(
        name, cluster.namespace, {"metadata": {"labels": {"somebody": "else"}}}
    )
    with pytest.raises(ConflictError, match="the object has been modified"):
        server.patch_job(stale, {"metadata": {"annotations": {PLACED: "x"}}})
    Jobs(server).change(job, labels={PLACED: "node.id==n1"})  # reads it again


@pytest.mark.usefixtures("account")
def test_a_patch_is_merged_as_the_tests_server_merges_it(cluster: ClusterPods, job: str) -> None:
    server, name = ApiServer(Patience(0.0)), job.partition("/")[2]
    raw = client.ApiClient().sanitize_for_serialization(
        cluster.batch.read_namespaced_job(name, cluster.namespace)
    )
    patch = {
        "metadata": {"annotations": {PLACED: "x"}, "labels": {"a": "b"}},
        "spec": {"template": {"spec": {"affinity": None}}, "parallelism": 1},
    }
    expected = merged(raw, patch)
    server.patch_job(server.job(*job.split("/")), patch)
    found = client.ApiClient().sanitize_for_serialization(
        cluster.batch.read_namespaced_job(name, cluster.namespace)
    )
    assert found["spec"] == expected["spec"]
    for one in ("annotations", "labels"):
        assert found["metadata"][one] == expected["metadata"][one]


def _has_node(cluster: ClusterPods, name: str) -> bool:
    return any(one.metadata.name == name for one in cluster.core.list_node().items)


def _node(name: str) -> dict[str, Any]:
    """A node that is only written down: no kubelet is there."""
    return {"metadata": {"name": name}, "spec": {"unschedulable": True}}
