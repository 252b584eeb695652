"""What a runtime answers by CRI, as values of the interface.

A container is named NAMESPACE/POD/CONTAINER. It has its own labels and those of its pod, and the
annotations of both that are meant for this toolkit: a value of a Kubernetes label has at most 63
letters, digits, dots, dashes and underscores, an annotation's any text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dltools.engine.cri.cpu_resources import limit_fields, recorded_limits
from dltools.engine.gpu_access import access_by_specification, asks_for_gpu
from dltools.engine.interface import Container, Ending, Mount, Network, Program, Refusals
from dltools.engine.pauses import may_pause
from dltools.labels import MAY_PAUSE, PREFIX
from dltools.notation.json_values import table_from, table_in

if TYPE_CHECKING:
    from dltools.engine.cri import runtime_pb2 as messages

_STATES = ("created", "running", "exited", "dead")
"""The states of CRI, by their numbers."""

_PORTS = "io.kubernetes.container.ports"
"""kubelet's annotation of a container with its ports, as JSON."""

_NO_PAUSE = (
    f"its pod has no annotation {MAY_PAUSE}=allow: CRI does not tell whether it has probes, "
    "which fail while it is paused"
)
_TIE = "Kubernetes decides where it runs"


def container_name(name: str, pod: messages.PodSandboxMetadata) -> str:
    """Return what a container of a pod is called here."""
    return f"{pod.namespace}/{pod.name}/{name}"


def labels_of(
    own: Mapping[str, str],
    pod: messages.PodSandbox | messages.PodSandboxStatus,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the labels of a container: its own, its pod's, and what annotations add."""
    labels = {**pod.labels}
    for given in (pod.annotations, annotations or {}):
        labels |= {key: value for key, value in given.items() if key.startswith(PREFIX)}
    return {**labels, **own}


def container_of(
    answer: messages.ContainerStatusResponse, pod: messages.PodSandboxStatus
) -> Container:
    """Return the container of a verbose status, whose state is not paused."""
    status, info = answer.status, info_of(answer.info)
    labels = labels_of(status.labels, pod, status.annotations)
    spec = table_in(info, "runtimeSpec")
    process = table_in(spec, "process")
    environ = _texts(process.get("env"))
    fields = limit_fields(info)
    access = access_by_specification(spec, is_asked=asks_for_gpu(environ))
    return Container(
        id=status.id,
        name=container_name(status.metadata.name, pod.metadata),
        image=status.image.image or status.image_ref,
        state=_STATES[status.state] if 0 <= status.state < len(_STATES) else "dead",
        pid=int(info.get("pid") or 0),
        started=time_of(status.started_at),
        labels=labels,
        image_id=status.image_ref,
        started_text=str(status.started_at or ""),
        ended=Ending(
            time_of(status.finished_at),
            status.exit_code if status.finished_at else None,
            status.message or status.reason,
        ),
        program=Program(
            _texts(process.get("args")),
            "\0".join(environ).encode(errors="replace"),
            pod.metadata.name,
        ),
        network=_network(pod, status.annotations),
        mounts=tuple(Mount(mount.container_path) for mount in status.mounts),
        refuses=Refusals((_TIE,), "" if may_pause(labels) else _NO_PAUSE),
        **access._asdict(),
        recorded=recorded_limits(fields, info),
        limit_fields=fields,
        native={**info, "log_path": status.log_path},
    )


def info_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the object that a verbose answer has under `info`, {} where it has none."""
    return table_from(texts.get("info", ""))


def root_of(texts: Mapping[str, str]) -> str:
    """Return the folder in which a runtime keeps its containers, given its verbose status; "" where
    it does not say: each runtime of a machine has its own."""
    return str(table_from(texts.get("config", "")).get("containerdRootDir") or "")


def time_of(nanos: int) -> datetime | None:
    """Return a time of CRI (ns since 1970), None for 0, which is none."""
    return datetime.fromtimestamp(nanos / 1e9, UTC) if nanos > 0 else None


def _network(pod: messages.PodSandboxStatus, annotations: Mapping[str, str]) -> Network:
    is_on_node = pod.linux.namespaces.options.network == 2  # NamespaceMode NODE
    ip = pod.network.ip
    return Network(
        names=("host",) if is_on_node else ("pod",),
        is_shared=is_on_node,
        addresses=("127.0.0.1",) if is_on_node else (ip,) if ip else (),
        exposed=_ports(annotations.get(_PORTS, "")),
    )


def _ports(text: str) -> frozenset[int]:
    """Return the TCP ports that kubelet's annotation names."""
    try:
        ports = json.loads(text) if text else []
        return frozenset(
            int(port["containerPort"]) for port in ports if port.get("protocol", "TCP") == "TCP"
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return frozenset()


def _texts(words: Any) -> Sequence[str]:
    return [str(word) for word in words] if isinstance(words, list) else []
