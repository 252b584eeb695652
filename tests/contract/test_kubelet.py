"""What only a real kubelet can show, beside what the tools do by the runtime and by cgroups: see
tests/engines/kubernetes."""

import os
import time
from typing import Any

import pytest
from contract.plans import update
from contract.subject import MEANT
from helpers.cluster_pods import ClusterPods
from helpers.containers import eventually
from helpers.tools import Tools, records

KUBECONFIG = os.environ.get("KUBECONFIG", "")
RUNTIME = os.environ.get("CONTAINER_RUNTIME_ENDPOINT", "").replace("unix://", "cri://")
CPUS = {"limits": {"cpu": "300m"}, "requests": {"cpu": "100m"}}
IDLE = "while :; do sleep 1; done"

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        "kubernetes" not in MEANT or not KUBECONFIG, reason="DLTOOLS_CONTRACT names no kubernetes"
    ),
]


class Target:
    """A container as plans name it."""

    def __init__(self, id_: str) -> None:
        from dltools.engine.cri.cri_engine import CriEngine

        self.engine = CriEngine(RUNTIME)
        self.id, self.name = id_, self.engine.inspect(id_).name


def runtime_rows(tool: Tools, cluster: ClusterPods, host: str, pod: str) -> list[dict[str, Any]]:
    only = ("--name", f"^{cluster.namespace}/{pod}/")
    probe = ("dl-probe", "--host", host, *only, "-i", "1", "-c", "3", "--format", "jsonl")
    return records(tool(*probe).stdout)


def test_a_training_is_measured_by_the_runtime(cluster, tool) -> None:
    name = "measured"
    script = "i=0; while :; do i=$((i+1)); echo step $i loss: 0.$((99999-i)); usleep 50000; done"
    cluster.start(name, script, resources=CPUS)
    rows = runtime_rows(tool, cluster, RUNTIME, name)
    containers = [one for one in rows if one["kind"] == "container"]
    assert {one["container_name"] for one in containers} == {f"{cluster.namespace}/{name}/main"}
    assert {one["container_id"] for one in containers} == {cluster.container_id(name)}
    assert containers[-1]["cpu_seconds"] > 0
    assert containers[-1]["cpu_limit_cores"] == 0.3
    steps = [one["step"] for one in rows if one["kind"] == "progress"]
    assert steps == list(range(steps[0], steps[0] + len(steps)))
    assert len(steps) > 10


@pytest.mark.usefixtures("state")
def test_kubelet_leaves_alone_what_is_set_under_a_lease(cluster, tool) -> None:
    cluster.start("leased", IDLE, resources=CPUS)
    target: Any = Target(cluster.container_id("leased"))
    engine = target.engine
    before = engine.inspect(target.id).limit_fields
    order = update(target, target, cpus=0.2)
    (result,) = records(tool("dl-apply", "--host", RUNTIME, "--lease", "10m", input=order).stdout)
    assert result["status"] == "applied", result
    time.sleep(75.0)  # kubelet looks at each pod anew at least once a minute
    assert engine.inspect(target.id).recorded["cpus"] == 0.2
    pod = cluster.pod("leased")
    (status,) = pod.status.container_statuses
    assert (status.restart_count, pod.status.phase) == (0, "Running")
    assert pod.spec.containers[0].resources.limits == {"cpu": "300m"}
    (undone,) = records(tool("dl-apply", "--host", RUNTIME, "--undo").stdout)
    assert undone["status"] == "applied", undone
    assert engine.inspect(target.id).limit_fields == before


def test_a_container_that_kubelet_starts_again_has_its_own_limits(cluster, tool, state) -> None:
    cluster.start("killed", IDLE, resources=CPUS, restartPolicy="Always")
    first = cluster.container_id("killed")
    target: Any = Target(first)
    engine = target.engine
    order = update(target, target, cpus=0.2)
    (result,) = records(tool("dl-apply", "--host", RUNTIME, "--lease", "10m", input=order).stdout)
    assert result["status"] == "applied", result
    os.kill(engine.inspect(first).pid, 9)
    second = eventually(
        lambda: cluster.container_id("killed"), lambda found: found not in ("", first), seconds=60
    )
    assert engine.inspect(second).recorded["cpus"] == 0.3
    done = tool("dl-apply", "--host", RUNTIME, "--undo")
    assert done.returncode == 0, done.stderr
    assert list((state / "journal").glob("*")) == []
