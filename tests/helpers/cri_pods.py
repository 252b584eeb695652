"""Pods and containers on a real CRI runtime, made as kubelet makes them.

Requests are written from the fields' published numbers: what only tests ask for needs no generated
code.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

IMAGE = "dltools-test-busybox"
_ON_NODE = 2  # NamespaceMode NODE


def encode(fields: Mapping[int, Any]) -> bytes:
    """Return a protobuf message: numbers, texts, messages (Mapping), lists of these, and maps as
    lists of {1: key, 2: value}."""
    found = b""
    for number, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int):
                found += _varint(number << 3) + _varint(one & (1 << 64) - 1)
            else:
                body = one.encode() if isinstance(one, str) else encode(one)
                found += _varint(number << 3 | 2) + _varint(len(body)) + body
    return found


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(found) + bytes([value])


def _map(given: Mapping[str, str]) -> list[Mapping[int, Any]]:
    return [{1: key, 2: value} for key, value in given.items()]


class Pod(NamedTuple):
    """A pod: its id, and its configuration, which each of its containers is made with."""

    id: str
    name: str
    config: Mapping[int, Any]
    logs: Path


class Pods:
    """Makes pods and containers at an address (unix:///PATH), and removes them."""

    def __init__(self, address: str, namespace: str = "lab") -> None:
        import grpc

        self._channel = grpc.insecure_channel(address)
        self.namespace = namespace
        self.parent = f"/kubepods/besteffort/pod{namespace}"
        """The cgroup of a pod, as kubelet would name it."""
        self._logs = Path(tempfile.mkdtemp(prefix="dltools-pods-", dir="/tmp"))
        self._made: list[str] = []

    def call(self, method: str, fields: Mapping[int, Any], timeout_s: float = 60.0) -> bytes:
        ask: Callable[..., bytes] = self._channel.unary_unary(
            f"/runtime.v1.RuntimeService/{method}", request_serializer=encode
        )
        return ask(fields, timeout=timeout_s)

    def run_pod(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        parent: str = "",
        attempt: int = 0,
    ) -> Pod:
        uid = f"uid-{name}"
        logs = self._logs / f"{self.namespace}_{name}_{uid}"
        logs.mkdir(exist_ok=True)
        ours = {
            "io.kubernetes.pod.name": name,
            "io.kubernetes.pod.namespace": self.namespace,
            "io.kubernetes.pod.uid": uid,
        }
        config: Mapping[int, Any] = {
            1: {1: name, 2: uid, 3: self.namespace, 4: attempt},
            3: str(logs),
            6: _map({**(labels or {}), **ours}),
            7: _map(annotations or {}),
            8: {1: parent, 2: {1: {1: _ON_NODE}}},
        }
        id_ = _first_text(self.call("RunPodSandbox", {1: config}))
        self._made.append(id_)
        return Pod(id_, name, config, logs)

    def run_container(
        self,
        pod: Pod,
        name: str,
        command: Sequence[str],
        *,
        image: str = IMAGE,
        cpu_quota: int = 0,
        cpu_shares: int = 0,
        environ: Mapping[str, str] | None = None,
        mounts: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        attempt: int = 0,
    ) -> str:
        """Start a container in a pod, and return its id. `mounts` maps paths inside to outside."""
        period = 100_000 if cpu_quota else 0
        config: Mapping[int, Any] = {
            1: {1: name, 2: attempt},
            2: {1: image},
            3: list(command),
            6: _map(environ or {}),
            7: [{1: inside, 2: outside} for inside, outside in (mounts or {}).items()],
            9: _map(
                {
                    "io.kubernetes.container.name": name,
                    "io.kubernetes.pod.name": pod.name,
                    "io.kubernetes.pod.namespace": self.namespace,
                    "io.kubernetes.pod.uid": f"uid-{pod.name}",
                }
            ),
            10: _map(annotations or {}),
            11: f"{name}_{attempt}.log",
            15: {1: {1: period, 2: cpu_quota, 3: cpu_shares}, 2: {3: {1: _ON_NODE}}},
        }
        asked = {1: pod.id, 2: config, 3: pod.config}
        id_ = _first_text(self.call("CreateContainer", asked))
        self.call("StartContainer", {1: id_})
        return id_

    def stop(self, container_id: str, grace_s: int = 0) -> None:
        self.call("StopContainer", {1: container_id, 2: grace_s})

    def remove(self, container_id: str) -> None:
        self.call("RemoveContainer", {1: container_id})

    def reopen_log(self, container_id: str) -> None:
        """Let the runtime open a container's log anew, as kubelet does after it has renamed it."""
        self.call("ReopenContainerLog", {1: container_id})

    def update(
        self, container_id: str, *, quota: int = 0, shares: int = 0, cpuset: str = ""
    ) -> None:
        self.call(
            "UpdateContainerResources",
            {1: container_id, 2: {1: 100_000 if quota else 0, 2: quota, 3: shares, 6: cpuset}},
        )

    def close(self) -> None:
        for id_ in reversed(self._made):
            self.call("StopPodSandbox", {1: id_})
            self.call("RemovePodSandbox", {1: id_})
        self._made.clear()
        self._channel.close()
        shutil.rmtree(self._logs, ignore_errors=True)


def _first_text(answer: bytes) -> str:
    """Return the first field of an answer, which is an id."""
    return answer[2 : 2 + answer[1]].decode()
