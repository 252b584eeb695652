"""The rules by which the API server from memory refuses, and its merges beside kubectl's own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from helpers.api_rules import job_refusals, merged, qos_class, resize_refusals
from helpers.fake_api_server import FakeApiServer, node_of
from helpers.fake_engine import action
from helpers.fake_jobs import FakeJobs

from dltools.apply.migrate.migration import MigrationFiles
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.migrate.mover import Mover
from dltools.engine.interface import LocatedContainer
from dltools.engine.kubernetes.kubernetes_engine import KubernetesEngine
from dltools.plan.records import Op, Result, Status

pytestmark = pytest.mark.slow  # the client takes 0.4 s to import

KUBECTL = shutil.which("kubectl")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def resources(**kinds: dict[str, Any] | None) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": kinds}]}}


@pytest.mark.parametrize(
    ("pod", "class_"),
    [
        ({"limit": "2", "request": "2"}, "Burstable"),  # it has no limit of memory
        ({"limit": "2", "request": "2000m", "memory": "1Gi"}, "Guaranteed"),
        ({"limit": "2", "request": "1", "memory": "1Gi"}, "Burstable"),
        ({"limit": "", "request": ""}, "BestEffort"),
        ({"limit": "", "request": "1"}, "Burstable"),
    ],
)
def test_classes_of_pods(server: FakeApiServer, pod: dict[str, str], class_: str) -> None:
    assert qos_class(server.add(**pod)) == class_  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (resources(limits={"cpu": "1"}), ""),
        (resources(limits={"cpu": "400m"}), "must be less than or equal to cpu limit of 400m"),
        (resources(limits={"cpu": None}), "resource limits cannot be removed"),
        (resources(limits={"cpu": "500m"}), "Pod QOS Class may not change as a result of resizing"),
        (resources(limits={"nvidia.com/gpu": "1"}), "only cpu and memory resources are mutable"),
        (
            {"spec": {"containers": [{"name": "other", "image": "i"}]}},
            "containers may not be added or removed on resize",
        ),
        ({"spec": {"nodeName": "n2"}}, "only cpu and memory resources are mutable"),
    ],
)
def test_resizes_that_are_refused(server: FakeApiServer, patch: Any, said: str) -> None:
    pod = server.add(limit="2", request="500m", memory="1Gi")
    assert said in ", ".join(resize_refusals(merged(pod, patch), pod))
    if not said:
        assert list(resize_refusals(merged(pod, patch), pod)) == []


def test_a_field_that_the_schema_does_not_have_is_no_patch(server: FakeApiServer) -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        merged(server.add(), {"spec": {"nodename": "n2"}})


def suspended(server: FakeApiServer, **status: Any) -> Any:
    job = FakeJobs(server).add(suspend=True)
    job["status"] = {"conditions": [{"type": "Suspended", "status": "True"}], **status}
    return job


def placing(*terms: Any, **others: Any) -> Any:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}, **others}
    return {"spec": {"template": {"spec": {"affinity": affinity}}}}


def on(*nodes: str, key: str = "metadata.name") -> Any:
    return {"matchFields": [{"key": key, "operator": "In", "values": list(nodes)}]}


STARTED = {"startTime": "2026-01-31T12:00:00Z"}


@pytest.mark.parametrize(
    ("status", "minor", "patch", "said"),
    [
        ({}, 34, placing(on("n2")), ""),
        (STARTED, 36, placing(on("n2")), ""),
        (STARTED, 35, placing(on("n2")), "}: field is immutable"),
        ({**STARTED, "active": 1}, 36, placing(on("n2")), "field is immutable"),
        ({}, 36, placing(), "must have at least one node selector term"),
        ({}, 36, placing(on("n1", "n2")), "must be only one value"),
        ({}, 36, placing(on("x", key="metadata.labels")), "not a valid field selector key"),
        (
            {},
            36,
            placing(on("n2"), podAffinity={REQUIRED: [{"topologyKey": "zone"}]}),
            "field is immutable",
        ),
        ({}, 36, {"spec": {"completions": 2}}, "spec.completions: Invalid value"),
        (
            {},
            36,
            {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}},
            "spec.template: Invalid value",
        ),
    ],
)
def test_changes_of_a_suspended_job(
    server: FakeApiServer, status: Any, minor: int, patch: Any, said: str
) -> None:
    job = suspended(server, **status)
    found = ", ".join(job_refusals(merged(job, patch), job, minor))
    assert said in found if said else found == ""


def test_the_template_of_a_job_that_runs_is_immutable(server: FakeApiServer) -> None:
    job = FakeJobs(server).add()
    patch = {**placing(on("n2")), "spec": {**placing(on("n2"))["spec"], "suspend": True}}
    assert "field is immutable" in "".join(job_refusals(merged(job, patch), job, 36))


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_what_is_sent_is_merged_as_kubernetes_merges_it(
    server: FakeApiServer, engine: KubernetesEngine, tmp_path: Path
) -> None:
    server.add(limit="2", request="2", memory="1Gi")
    container = engine.inspect("c1")
    located = LocatedContainer(container, None, 4.0, "0-3")
    engine.set_limits(located, {"cpus": 0.5}, lambda: True)
    engine.restore_limits(located, container.limit_fields, {}, lambda: True)
    del server.pods["lab", "train"]

    server.jobs.add()
    server.nodes["n2"] = node_of("n2", "4")
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    kept = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    for affinity in (
        None,
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term, term]}}},
        {"nodeAffinity": kept},
        {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}},
    ):
        template = server.jobs.all["job"]["spec"]["template"]["spec"]
        template.pop("affinity", None)
        if affinity:
            template["affinity"] = affinity
        _move_and_undo(server, tmp_path / "migrations")
    assert len(server.merges) >= 14
    for old, patch, new in server.merges:
        assert _solid(_by_kubectl(old, patch)) == _solid(new)


def _move_and_undo(server: FakeApiServer, folder: Path) -> None:
    while server.jobs.running() != ["n1"]:
        server.jobs.advance()
    engines = {name: KubernetesEngine(name) for name in ("n1", "n2")}
    now = iter(range(10_000))
    mover = Mover(engines, MigrationFiles(folder), lambda _: None, lambda: float(next(now)))
    (found,) = engines["n1"].containers()
    values = {"host": "n1", "container_id": found.id, "container_name": found.name, "to": "n2"}
    result = Result(1, Status.SKIPPED, found.id, found.name)
    order = action({}, Op.MIGRATE, **values)
    moved = Migrator(mover).migrate(order, engines["n1"].inspect(found.id), result, {})
    assert moved.status is Status.APPLIED, moved
    (undone,) = Migrator(mover).undo(lambda _: None)
    assert undone.status is Status.APPLIED, undone


def _by_kubectl(old: Any, patch: Any) -> Any:
    assert KUBECTL is not None
    line = [KUBECTL, "patch", "--local", "-f", "-", "--type", "strategic", "-o", "json"]
    done = subprocess.run(
        [*line, "-p", json.dumps(patch)], input=json.dumps(old).encode(), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def _solid(found: Any) -> Any:
    """Return an object without what is empty or null: Go writes some of that, and reads it as not
    there."""
    if isinstance(found, dict):
        solid = {key: _solid(value) for key, value in found.items()}
        return {key: value for key, value in solid.items() if value not in ({}, [], None)}
    return [_solid(one) for one in found] if isinstance(found, list) else found
