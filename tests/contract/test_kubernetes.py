"""What only a Kubernetes node has: kubelet beside dltools, which these tests play."""

import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from contract.conftest import SPIN, TRAINING
from contract.cri_node import CriNode as Node
from contract.plans import plan, update
from contract.subject import MEANT, Job
from helpers.containers import Job as Made
from helpers.tools import Tools, command, environment, records

from dltools.actions.plan_lines import load_plans
from dltools.actions.plans import Op

ENDPOINT = os.environ.get("CONTAINER_RUNTIME_ENDPOINT", "")

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not any(name.startswith("containerd") for name in MEANT) or not ENDPOINT,
        reason="DLTOOLS_CONTRACT names no containerd",
    ),
]


@pytest.fixture
def node() -> Iterator[Node]:
    with closing(Node("containerd", ENDPOINT)) as made:
        yield made


@pytest.fixture
def job(node: Node) -> Job:
    return node.start("while :; do sleep 1; done")


def leased(node: Node, tool: Tools, plans: bytes) -> list[dict[str, Any]]:
    return records(tool("dl-apply", "--host", node.url, "--lease", "10m", input=plans).stdout)


def test_a_cpu_list_of_the_cpu_manager_is_nobodys_change(node, tool, job) -> None:
    before = job.kernel()
    leased(node, tool, update(node, job, cpus=0.4, weight=300))
    node.pods.update(job.id, cpuset="0")
    (again,) = leased(node, tool, update(node, job, cpus=0.5))
    assert again["status"] == "applied"
    (result,) = records(tool("dl-apply", "--host", node.url, "--undo").stdout)
    assert result["status"] == "applied"
    assert job.kernel() == {**before, "cpuset.cpus": "0"}


def test_a_pod_that_does_not_allow_it_is_never_paused(node, tool) -> None:
    pod = node.pods.run_pod("probed", parent=f"{node.pods.parent}p")
    id_ = node.pods.run_container(pod, "main", ["sleep", "99"])
    container = node.engine.inspect(id_)

    class Probed:
        id, name = container.id, container.name

    probed: Any = Probed()
    turn = {"group": 0, "turn_s": 1.0}
    results = leased(node, tool, plan(node, (Op.PAUSE, probed, {}), (Op.ROTATE, probed, turn)))
    assert [result["status"] for result in results] == ["skipped", "skipped"]
    for result in results:
        assert result["error"].startswith("its pod has no annotation dltools.pause=allow")
    assert node.engine.inspect(id_).state == "running"


def test_no_quota_above_the_pods_own_is_sent(node, tool) -> None:
    pod = node.pods.run_pod("limited", parent=f"{node.pods.parent}q")
    id_ = node.pods.run_container(pod, "main", ["sleep", "99"], cpu_quota=50_000, cpu_shares=512)
    made: Any = node.engine.inspect(id_)
    record = made.limit_fields
    for cpus in (0.8, None):
        (result,) = leased(node, tool, update(node, made, cpus=cpus))
        assert result["status"] == "failed"
        assert result["error"].startswith("its pod limits it to 0.5 CPUs")
    assert node.engine.inspect(id_).limit_fields == record
    (result,) = leased(node, tool, update(node, made, cpus=0.2))
    assert result["status"] == "applied"
    assert node.engine.inspect(id_).limit_fields["cpu_quota"] == 20_000
    tool("dl-apply", "--host", node.url, "--undo")
    assert node.engine.inspect(id_).limit_fields == record


def test_trainings_in_pods_of_their_own_have_quotas_within_their_limits(
    node, tool, tmp_path
) -> None:
    """A weight counts among the containers of one pod alone."""
    jobs = []
    for name, quota in (("free", 0), ("other", 0), ("limited", 50_000)):
        pod = node.pods.run_pod(name, parent=f"{node.pods.parent}{name}")
        script = f"({SPIN}) & ({SPIN}) & {TRAINING}"
        id_ = node.pods.run_container(pod, "main", ["sh", "-c", script], cpu_quota=quota)
        jobs.append(Made(node.engine, id_, name))
    before = [one.kernel() for one in jobs]
    probe = f"dl-probe --host {node.url} {' '.join(node.only)} -i 1 -c 6"
    line = f"{probe} | dl-plan -p srtf | tee plans | dl-apply --host {node.url} --lease 60"
    done = tool.shell(f"cd {tmp_path} && {line} --hold 1s", tmp_path / "bin")
    plans = list(load_plans((tmp_path / "plans").read_bytes().splitlines(), "plans"))
    quotas = [plan for plan in plans if plan.params["realize"] == "quota"]
    assert quotas, [plan.params["realize_why"] for plan in plans]
    assert "weights do nothing here" in quotas[-1].params["realize_why"]
    results = records(done.stdout)
    assert results, done.stderr
    assert {one["status"] for one in results} <= {"applied", "unchanged"}
    set_ = {one["container"]["name"].split("/")[1]: one["after"]["cpus"] for one in results}
    assert 0.5 <= max(set_.get(name, 0.0) or 0.0 for name in ("free", "other")) < 2
    assert set_.get("limited", 0.5) <= 0.5
    assert tool("dl-apply", "--host", node.url, "--undo").returncode == 0
    assert [one.kernel() for one in jobs] == before

    asked = f"{probe} | dl-plan -p srtf --realize weight | dl-apply --host {node.url} --lease 60"
    done = tool.shell(asked, tmp_path / "bin")
    assert records(done.stdout) == []
    assert b"--realize weight is not possible: weights do nothing here" in done.stderr
    assert [one.kernel() for one in jobs] == before


def test_a_stream_reads_on_across_kubelets_rotations(node, tool) -> None:
    line = "i=$((i+1)); echo step $i loss: 0.$i; usleep 40000"
    job = node.start(f"sleep 1; i=0; while [ $i -lt 80 ]; do {line}; done")
    log = Path(node.engine.inspect(job.id).native["log_path"])
    process = tool.begin(
        "dl-probe", "--host", node.url, *node.only, "-i", "0.5", "-c", "14", "--format", "jsonl"
    )
    for number in range(4):
        time.sleep(1.0)
        log.rename(f"{log}.20260131-12000{number}")
        node.pods.reopen_log(job.id)
    output, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    steps = [row["step"] for row in records(output) if row["kind"] == "progress"]
    assert steps == list(range(1, 81))


def test_from_a_pods_own_cgroup_namespace_the_counters_are_found(node, job) -> None:
    """As in the DaemonSet on cgroup version 2, where paths begin at the pod."""
    own, places = f"dltools-test-{uuid.uuid4().hex[:8]}", []
    for controller in ("cpu", "cpuacct", "memory", "cpuset"):
        place = Path("/sys/fs/cgroup") / controller / own
        if place.parent.is_dir() and controller != "cpuset":
            (place / "pod").mkdir(parents=True)
            places.append(place / "pod")
    enter = "; ".join(f"echo $$ >{place}/cgroup.procs" for place in places)
    probe = [*command("dl-probe"), "--host", node.url, *node.only, "--format", "jsonl"]
    try:
        done = subprocess.run(
            ["sh", "-c", f'{enter}; exec unshare --cgroup "$@"', "sh", *probe],
            env=environment(),
            capture_output=True,
            timeout=60,
        )
    finally:
        for place in places:
            with suppress(OSError):
                place.rmdir()
                place.parent.rmdir()
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    (row,) = [row for row in rows if row["kind"] == "container"]
    assert row["container_name"] == job.name
    assert row["cpu_seconds"] > 0
    assert row["memory_usage_bytes"] > 0
    assert row.get("gap") is None
