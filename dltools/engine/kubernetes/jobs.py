"""Jobs of a cluster as services of one task, which moves: suspended, given another node, resumed.

A Job's template can change only while the Job is suspended and its pods are gone; of a Job that has
started, since Kubernetes 1.36 (kubernetes#135104, KEP-5440). The node and the end of the suspension
go with one request, so that the Job is never resumed without its node. Suspending deletes the pod
with its grace period, and counts it neither as done nor as failed: the Job's controller takes its
finalizer off first (kubernetes, pkg/controller/job, deleteJobPods).

The node is a requirement of the template's node affinity, by the field metadata.name, as daemon
sets have it. As a constraint of the service it is node.id==NODE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.kubernetes.api_server import ApiServer, ConflictError
from dltools.engine.kubernetes.pod_resources import labels_of, lasting_id
from dltools.engine.services import Node, Service, Task
from dltools.labels import PLACED

CONTROLLER = "kubernetes.io/job-controller"
LEAST_VERSION = (1, 36)

_NODE = "node.id=="
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_QUEUE = "kueue.x-k8s.io/queue-name"
_TRIES = 5

ONLY_SUSPENDED = "a Job's node can change only while the Job is suspended, and somebody resumed it"


def owner(pod: Any) -> str:
    """Return the Job of a pod as NAMESPACE/NAME, "" for none."""
    for one in pod.metadata.owner_references or ():
        if one.controller and one.kind == "Job" and one.api_version.startswith("batch/"):
            return f"{pod.metadata.namespace}/{one.name}"
    return ""


class Jobs:
    """A cluster's Jobs. Methods raise as `Engine`'s do."""

    is_fixed_while_running = True

    def __init__(self, server: ApiServer) -> None:
        """Use the connection to the API server."""
        self._server = server

    def service(self, id_: str) -> Service:
        """Return one Job that is not over."""
        job = self._living(id_)
        return Service(
            id_,
            job.metadata.name,
            job.status.start_time,
            0 if job.spec.suspend else _parallelism(job),
            "job",
            labels_of(job.metadata),
            _constraints(job),
        )

    def tasks(self, service_id: str) -> list[Task]:
        """Return the pods of a Job. While its controller has not yet suspended it, a pod may still
        be made: so long, a task without a node is live."""
        job = self._job(service_id)
        found = [_task(pod) for pod in self._server.job_pods(job)]
        if job.spec.suspend and not _is(job, "Suspended") and not _is_over(job):
            found.append(Task("", "suspending", "", None, "", is_live=True, has_failed=False))
        return found

    def node(self, id_: str) -> Node:
        """Return one node."""
        found = self._server.node(id_)
        is_ready = any(
            one.type == "Ready" and one.status == "True" for one in found.status.conditions or ()
        )
        return Node(
            "ready" if is_ready else "not ready",
            "cordoned" if found.spec and found.spec.unschedulable else "active",
            lambda constraint: constraint != f"{_NODE}{id_}",
        )

    def ties(self, service_id: str) -> Iterator[str]:
        """Yield why a Job cannot be moved, in sentences."""
        job = self._living(service_id)
        version = self._server.version()
        if version < LEAST_VERSION:
            own = ".".join(map(str, version))
            yield f"its API server is of Kubernetes {own}: Jobs that have started move since 1.36"
        spec, pod = job.spec, job.spec.template.spec
        if _parallelism(job) != 1 or (spec.completions or 1) != 1:
            yield "its Job is of several pods; one of one pod can be moved"
        if len(pod.containers) != 1:
            yield f"its pod has {len(pod.containers)} containers; one of one can be moved"
        owners = {one.kind for one in job.metadata.owner_references or () if one.controller}
        if owners - {"CronJob"} or spec.managed_by not in (None, CONTROLLER):
            yield "its Job is another controller's, which would resume it"
        if _constraints(job) not in ((), (labels_of(job.metadata).get(PLACED),)):
            yield "its Job names its nodes by a field"
        if _QUEUE in (job.metadata.labels or {}):
            yield "its Job is in a queue of Kueue, which would resume it"
        yield from self._ties_of_volumes(job.metadata.namespace, pod.volumes or ())

    def _ties_of_volumes(self, namespace: str, volumes: Sequence[Any]) -> Iterator[str]:
        for one in volumes:
            if one.host_path is not None:
                yield f"what is in its volume {one.name} would stay behind on the node"
            if (claim := one.persistent_volume_claim) is None:
                continue
            modes = self._server.claim(namespace, claim.claim_name).spec.access_modes or ()
            if "ReadWriteMany" not in modes:
                yield f"its claim {claim.claim_name} is not ReadWriteMany: no other node has it"

    def change(
        self,
        id_: str,
        *,
        replicas: int | None = None,
        constraints: Sequence[str] | None = None,
        labels: Mapping[str, str | None] | None = None,
    ) -> None:
        """Change what is not None of a Job, unless it is so already: with `replicas` 0 suspend it,
        with 1 resume it. Constraints are left for when it is resumed. A label is an annotation;
        one that is None is removed, and others stay."""
        for attempts_left in range(_TRIES - 1, -1, -1):
            job = self._living(id_)
            patch = _patch(job, replicas, constraints, labels or {})
            if not patch:
                return
            try:
                self._server.patch_job(job, patch)
            except ConflictError as error:  # its controller has written its status meanwhile
                if not attempts_left:
                    raise RefusedError(f"its Job changes all the time: {error}") from error
            else:
                return

    def _job(self, id_: str) -> Any:
        namespace, _, name = id_.partition("/")
        return self._server.job(namespace, name)

    def _living(self, id_: str) -> Any:
        job = self._job(id_)
        if _is_over(job):
            raise GoneError(f"job {id_} is over")
        return job


def _patch(
    job: Any,
    replicas: int | None,
    constraints: Sequence[str] | None,
    labels: Mapping[str, str | None],
) -> dict[str, Any]:
    """Return what changes a Job, {} if nothing must be changed."""
    present = labels_of(job.metadata)
    spec: dict[str, Any] = {}
    if replicas is not None and (replicas == 0) is not bool(job.spec.suspend):
        spec["suspend"] = replicas == 0
    if constraints is not None and replicas != 0 and tuple(constraints) != _constraints(job):
        if not job.spec.suspend:
            raise RefusedError(ONLY_SUSPENDED)
        affinity = _with_node(job.spec.template.spec.affinity, constraints)
        spec["template"] = {"spec": {"affinity": affinity}}
    changed = {key: value for key, value in labels.items() if present.get(key) != value}
    patch: dict[str, Any] = {"metadata": {"annotations": changed}} if changed else {}
    return {**patch, "spec": spec} if spec else patch


def _constraints(job: Any) -> tuple[str, ...]:
    """Return the nodes that a Job's template names by their field, as constraints."""
    found = {
        f"{_NODE}{value}"
        for term in _terms(job.spec.template.spec.affinity)
        for field in term.match_fields or ()
        for value in field.values or ()
    }
    return tuple(sorted(found))


def _terms(affinity: Any) -> Sequence[Any]:
    required = (
        affinity
        and affinity.node_affinity
        and affinity.node_affinity.required_during_scheduling_ignored_during_execution
    )
    return (required and required.node_selector_terms) or ()


def _with_node(affinity: Any, constraints: Sequence[str]) -> dict[str, Any] | None:
    """Return the patch of an affinity that requires the nodes of constraints, and no others. All
    else that it has stays."""
    fields = [
        {"key": "metadata.name", "operator": "In", "values": [one.removeprefix(_NODE)]}
        for one in constraints
    ]
    terms: list[dict[str, Any]] = []
    for term in _terms(affinity):
        asked = [
            {"key": one.key, "operator": one.operator, "values": list(one.values or ())}
            for one in term.match_expressions or ()
        ]
        if asked:
            terms.append({"matchExpressions": asked})
    if fields:
        terms = [{**term, "matchFields": fields} for term in terms or [{}]]
    if terms:
        return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
    others = affinity and (
        affinity.pod_affinity
        or affinity.pod_anti_affinity
        or affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    )
    return {"nodeAffinity": {_REQUIRED: None}} if others else None


def _parallelism(job: Any) -> int:
    return 1 if job.spec.parallelism is None else int(job.spec.parallelism)


def _is(job: Any, condition: str) -> bool:
    return any(
        one.type == condition and one.status == "True" for one in job.status.conditions or ()
    )


def _is_over(job: Any) -> bool:
    return _is(job, "Complete") or _is(job, "Failed") or job.metadata.deletion_timestamp is not None


def _task(pod: Any) -> Task:
    """Return a pod as a task. It is live until kubelet says that its containers have ended."""
    phase = pod.status.phase or "Pending"
    has_ended = phase in ("Succeeded", "Failed")
    runs = phase == "Running" and pod.metadata.deletion_timestamp is None
    states = {"Succeeded": "complete", "Running": "running" if runs else "stopping"}
    return Task(
        node_id=pod.spec.node_name or "",
        state=states.get(phase, phase.lower()),
        error=_error(pod),
        created=pod.metadata.creation_timestamp,
        container_id=lasting_id(pod, pod.spec.containers[0].name),
        is_live=not has_ended,
        has_failed=phase == "Failed",
    )


def _error(pod: Any) -> str:
    """Return why a pod does not run, "" if nothing is said."""
    for one in pod.status.conditions or ():
        if one.type == "PodScheduled" and one.status == "False":
            return " ".join(str(one.message or one.reason or "").split())
    for status in pod.status.container_statuses or ():
        waiting = status.state and status.state.waiting
        if waiting and waiting.message:
            return " ".join(f"{waiting.reason}: {waiting.message}".split())
    return ""
