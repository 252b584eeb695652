"""What an API server makes of a strategic merge patch, and why it refuses one.

The rules and their words are those of Kubernetes 1.36: pkg/apis/core/validation (for
ValidatePodResize and ValidateNodeSelector), pkg/apis/core/v1/helper/qos, pkg/apis/batch/validation
(for ValidateJobUpdate) and pkg/registry/batch/job. What a patch leaves must be as the published
schema has it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import kubernetes_validate
from kubernetes.utils.quantity import parse_quantity

Object = dict[str, Any]
SCHEMA = "1.36"

_KEYS = {"containers": "name", "initContainers": "name", "conditions": "type", "volumes": "name"}
"""By which field the elements of a list are merged; other lists are replaced."""

_RESIZED = ("cpu", "memory")
_IMMUTABLE = (
    "completions",
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def merged(old: Object, patch: Mapping[str, Any]) -> Object:
    """Return an object as a patch leaves it. Raises `kubernetes_validate.ValidationError` if the
    schema has no such object."""
    new = copy.deepcopy(old)
    _merge(new, patch)
    kubernetes_validate.validate(new, SCHEMA, strict=True)
    return new


def _merge(old: Object, new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if value is None:
            old.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(old.get(key), dict):
                old[key] = {}
            _merge(old[key], value)
        elif key in _KEYS:
            old[key] = _merge_list(old.get(key, []), value, _KEYS[key])
        else:
            old[key] = copy.deepcopy(value)


def _merge_list(old: list[Object], new: list[Object], key: str) -> list[Object]:
    found = {one[key]: one for one in old}
    for one in new:
        if one[key] in found:
            _merge(found[one[key]], one)
        else:
            found[one[key]] = copy.deepcopy(one)
    return list(found.values())


# Pods


def qos_class(pod: Object) -> str:
    """Return the QoS class of a pod by its containers."""
    sums: dict[str, dict[str, Any]] = {"limits": {}, "requests": {}}
    is_guaranteed = True
    for container in _containers(pod):
        given = _positive(container)
        is_guaranteed &= given["limits"].keys() == set(_RESIZED)
        for kind, values in given.items():
            for name, value in values.items():
                sums[kind][name] = sums[kind].get(name, 0) + value
    if not sums["limits"] and not sums["requests"]:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and sums["limits"] == sums["requests"] else "Burstable"


def resize_refusals(new: Object, old: Object) -> Iterator[str]:
    """Yield why the resize of a pod is refused."""
    class_ = old["status"]["qosClass"]
    if qos_class(new) != class_:
        yield (
            f'spec: Invalid value: "{class_}": Pod QOS Class may not change as a result of resizing'
        )
    statuses = old["status"].get("containerStatuses", [])
    running = [one for one in statuses if "running" in one.get("state", {})]
    if running and running[0].get("resources") is None:
        yield "spec: Forbidden: Pod running on node without support for resize"
    names = [[one["name"] for one in pod["spec"]["containers"]] for pod in (new, old)]
    if names[0] != names[1]:
        yield "spec.containers: Forbidden: containers may not be added or removed on resize"
        return
    for number, (now, before) in enumerate(
        zip(new["spec"]["containers"], old["spec"]["containers"], strict=True)
    ):
        yield from _resource_refusals(now, before, f"spec.containers[{number}].resources")
    if _without_resized(new) != _without_resized(old):
        yield "spec: Forbidden: only cpu and memory resources are mutable"


def _resource_refusals(now: Object, before: Object, path: str) -> Iterator[str]:
    for kind in ("requests", "limits"):
        if _given(before, kind).keys() - _given(now, kind).keys():
            yield f"{path}.{kind}: Forbidden: resource {kind} cannot be removed"
    limits = _given(now, "limits")
    for name, asked in _given(now, "requests").items():
        if name in limits and parse_quantity(asked) > parse_quantity(limits[name]):
            said = f"must be less than or equal to {name} limit of {limits[name]}"
            yield f'{path}.requests: Invalid value: "{asked}": {said}'


def _containers(pod: Object) -> list[Object]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]


def _given(container: Object, kind: str) -> dict[str, str]:
    found: dict[str, str] = container.get("resources", {}).get(kind, {})
    return found


def _positive(container: Object) -> dict[str, dict[str, Any]]:
    return {
        kind: {
            name: parse_quantity(value)
            for name, value in _given(container, kind).items()
            if name in _RESIZED and parse_quantity(value) > 0
        }
        for kind in ("limits", "requests")
    }


def _without_resized(pod: Object) -> Object:
    spec = copy.deepcopy(pod["spec"])
    for container in spec["containers"]:
        for kind in ("limits", "requests"):
            for name in _RESIZED:
                _given(container, kind).pop(name, None)
    return dict(spec)


# Jobs


def job_refusals(new: Object, old: Object, minor: int) -> Iterator[str]:
    """Yield why a change of a Job is refused, by a server of Kubernetes 1.`minor`."""
    for name in _IMMUTABLE:
        if new["spec"].get(name) != old["spec"].get(name):
            yield f"spec.{name}: Invalid value: ...: field is immutable"
    now, before = copy.deepcopy(new["spec"]["template"]), copy.deepcopy(old["spec"]["template"])
    if may_place(old, minor):
        for one in (now, before):
            _leave_out_placing(one)
    if now != before:
        yield f"spec.template: Invalid value: {_as_go_shows_it(now)}: field is immutable"
    yield from _selector_refusals(new["spec"]["template"]["spec"].get("affinity") or {})


def may_place(job: Object, minor: int) -> bool:
    """Tell whether what a Job's template asks of nodes can change."""
    status = job["status"]
    if not job["spec"].get("suspend"):
        return False
    if "startTime" not in status:
        return True
    return minor >= 36 and is_suspended(job) and not status.get("active")


def _as_go_shows_it(template: Object) -> str:
    """Return a template as servers put it into what they say: with all fields."""
    meta = "".join(
        f'{name}:"", ' for name in ("Name", "GenerateName", "Namespace", "SelfLink") * 20
    )
    return f"core.PodTemplateSpec{{ObjectMeta:v1.ObjectMeta{{{meta}}}, Spec:{template['spec']}}}"


def is_suspended(job: Object) -> bool:
    return any(
        one["type"] == "Suspended" and one["status"] == "True"
        for one in job["status"].get("conditions", [])
    )


def _leave_out_placing(template: Object) -> None:
    spec, meta = template["spec"], template.get("metadata", {})
    for name in ("labels", "annotations"):
        meta.pop(name, None)
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        spec.pop(name, None)
    affinity = spec.get("affinity") or {}
    affinity.pop("nodeAffinity", None)
    if not affinity:
        spec.pop("affinity", None)


def _selector_refusals(affinity: Object) -> Iterator[str]:
    path = f"spec.template.spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED)
    if required is None:
        return
    if not required.get("nodeSelectorTerms"):
        yield f"{path}: Required value: must have at least one node selector term"
    for number, term in enumerate(required.get("nodeSelectorTerms", [])):
        for field in term.get("matchFields", []):
            where = f"{path}[{number}].matchFields[0]"
            if field["key"] != "metadata.name":
                said = "not a valid field selector key"
                yield f'{where}.key: Invalid value: "{field["key"]}": {said}'
            if len(field.get("values", [])) != 1:
                said = "must be only one value when `operator` is 'In' or 'NotIn'"
                yield f"{where}.values: Required value: {said} for node field selector"
