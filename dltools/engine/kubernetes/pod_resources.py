"""A pod's container in the words of this toolkit, and what a quota means for its resources.

A quota is the limit of CPUs in the pod's specification. Kubernetes fixes the QoS class of a pod
when it is made, and refuses what would change it; it takes no limit away again; and it keeps the
CPUs that a pod requests for it. Source: "Resize CPU and Memory Resources assigned to Containers",
kubernetes.io, of Kubernetes 1.35.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from dltools.engine.interface import (
    Container,
    Fields,
    GoneError,
    Mount,
    RecordedLimits,
    RefusedError,
)
from dltools.labels import PREFIX

_CPU = "cpu"
_LIMITS, _REQUESTS = "limits", "requests"
GPU = "nvidia.com/gpu"
_LEAST = 0.001
_UNITS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(1000)}

Resources = Mapping[str, Mapping[str, str]]
"""Limits and requests of CPUs, as quantities of Kubernetes."""


def cores(quantity: str | None) -> float | None:
    """Return a quantity of CPUs, such as 250m, in cores; None for none. Raises `RefusedError`."""
    if not quantity:
        return None
    unit = _UNITS.get(quantity[-1])
    try:
        return float(Decimal(quantity[:-1]) * unit if unit else Decimal(quantity))
    except InvalidOperation as error:
        raise RefusedError(f"{quantity!r} is no quantity of CPUs") from error


def quantity_of(cpus: float) -> str:
    """Return cores as a quantity: Kubernetes counts thousandths."""
    return f"{max(1, round(cpus * 1000))}m"


def statuses(pod: Any) -> Iterator[Any]:
    """Yield the statuses of a pod's containers, but for those that begin it or debug it."""
    yield from pod.status.container_statuses or ()


def lasting_id(pod: Any, name: str) -> str:
    """Return the id of a pod's container, which stays the same when kubelet starts it again."""
    return f"{pod.metadata.uid}_{name}"


def runtime_ids(status: Any) -> set[str]:
    """Return the ids that the runtime of the node has given a container, and the one before it."""
    ended = status.last_state and status.last_state.terminated
    found = (status.container_id, ended and ended.container_id)
    return {one.rpartition("/")[2] for one in found if one}


def limit_fields(pod: Any, name: str) -> Fields:
    """Return the CPUs that a container's specification has, for the journal: "" for none."""
    own = _specified(pod, name)
    return {
        kind: str((getattr(own, kind, None) or {}).get(_CPU) or "") for kind in (_LIMITS, _REQUESTS)
    }


def recorded_limits(fields: Fields) -> RecordedLimits:
    """Return the limits for which fields of the journal stand. Weights follow from requests, which
    no plan sets, and CPU lists are kubelet's: both are left out."""
    return RecordedLimits(cores(fields.get(_LIMITS)))


def labels_of(metadata: Any) -> dict[str, str]:
    """Return the labels of an object, and what annotations add."""
    said = metadata.annotations or {}
    added = {key: value for key, value in said.items() if key.startswith(PREFIX)}
    return {**(metadata.labels or {}), **added}


def container_of(pod: Any, status: Any, job: str) -> Container:
    """Return a container of a pod, which is of a Job, "" of none."""
    running, ended = status.state and status.state.running, status.state and status.state.terminated
    fields = limit_fields(pod, status.name)
    return Container(
        id=lasting_id(pod, status.name),
        name=f"{pod.metadata.namespace}/{pod.metadata.name}/{status.name}",
        image=status.image,
        image_id=status.image,  # each node's kubelet fetches it by its name
        state="running" if running else "exited" if ended else "created",
        started=running.started_at if running else None,
        started_text=str(running.started_at) if running else "",
        finished=ended.finished_at if ended else None,
        exit_code=ended.exit_code if ended else None,
        labels=labels_of(pod.metadata),
        host_name=pod.metadata.name,
        recorded=recorded_limits(fields),
        limit_fields=fields,
        service_id=job,
        ties=() if job else ("its pod is of no Job: Kubernetes moves no pods",),
        mounts=tuple(_mounts(pod, status.name)),
        has_gpu=_has_gpu(pod, status.name),
        native={"name": status.name, "grace_s": _grace_s(pod)},
    )


def _mounts(pod: Any, name: str) -> Iterator[Mount]:
    """Yield the mounts of volumes that other nodes may have, too: those of claims."""
    claims = {one.name for one in pod.spec.volumes or () if one.persistent_volume_claim is not None}
    for mount in _container(pod, name).volume_mounts or ():
        if mount.name in claims:
            yield Mount(mount.mount_path)


def _grace_s(pod: Any) -> float:
    """Return how long a pod may take to stop."""
    own = pod.spec.termination_grace_period_seconds
    return 30.0 if own is None else float(own)


def _has_gpu(pod: Any, name: str) -> bool:
    own = _specified(pod, name)
    return GPU in ((own and own.limits) or {})


def has_ended(pod: Any) -> bool:
    """Tell whether a pod is over: nothing of it starts again."""
    return pod.status.phase in ("Succeeded", "Failed")


def resized(pod: Any, name: str, cpus: float) -> Resources:
    """Return the resources that give a container a quota. Raises `RefusedError` where Kubernetes
    would refuse it, could not take it back, or would start the container again."""
    fields, class_ = limit_fields(pod, name), pod.status.qos_class
    if class_ == "BestEffort":
        raise RefusedError("its pod is BestEffort, and Kubernetes gives such a pod no limits")
    if getattr(pod.spec, "resources", None):
        raise RefusedError("its pod has resources of its own, and not its containers alone")
    if not fields[_LIMITS]:
        raise RefusedError("it has no limit of CPUs, and Kubernetes would not take one away again")
    for one in _container(pod, name).resize_policy or ():
        if one.resource_name == _CPU and one.restart_policy != "NotRequired":
            raise RefusedError("its resizePolicy would start it again")
    if reason := obstacle(pod):
        raise RefusedError(f"an earlier resize of its pod is not done: {reason}")
    if _status(pod, name).resources is None:
        raise RefusedError("its kubelet does not resize pods: Kubernetes 1.33 or later is needed")
    wanted = quantity_of(cpus)
    if class_ == "Guaranteed":
        return {_LIMITS: {_CPU: wanted}, _REQUESTS: {_CPU: wanted}}
    asked = cores(fields[_REQUESTS])
    if asked is not None and asked > (cores(wanted) or 0.0):
        raise RefusedError(f"its pod requests {asked:g} CPUs, and a limit cannot be below that")
    return {_LIMITS: {_CPU: wanted}}


def original(fields: Fields) -> Resources:
    """Return the resources for which fields of the journal stand."""
    return {kind: {_CPU: fields[kind]} for kind in (_LIMITS, _REQUESTS) if fields.get(kind)}


def is_in_force(pod: Any, name: str, wanted: Resources) -> bool:
    """Tell whether kubelet has set a limit. What it says of requests is rounded: it reads them from
    a weight."""
    actual = _status(pod, name).resources
    limit = cores(((actual and actual.limits) or {}).get(_CPU))
    sought = cores(wanted[_LIMITS][_CPU])
    return limit is not None and sought is not None and abs(limit - sought) < _LEAST


def obstacle(pod: Any) -> str:
    """Return why kubelet does not set what a pod's specification has, "" if it may yet."""
    for one in pod.status.conditions or ():
        newest = getattr(one, "observed_generation", None) or pod.metadata.generation or 0
        is_of_now = newest >= (pod.metadata.generation or 0)
        is_pending = one.type == "PodResizePending"
        has_failed = one.type == "PodResizeInProgress" and one.reason == "Error"
        if one.status == "True" and is_of_now and (is_pending or has_failed):
            said = " ".join(str(one.message or "no reason is given").split())
            return f"kubelet does not resize it ({one.reason}): {said}"
    return ""


def _container(pod: Any, name: str) -> Any:
    found = next((one for one in pod.spec.containers if one.name == name), None)
    if found is None:
        raise GoneError(f"pod {pod.metadata.name} has no container {name}")
    return found


def _specified(pod: Any, name: str) -> Any:
    return _container(pod, name).resources


def _status(pod: Any, name: str) -> Any:
    found = next((one for one in statuses(pod) if one.name == name), None)
    if found is None:
        raise GoneError(f"container {name} of pod {pod.metadata.name} has not started")
    return found
