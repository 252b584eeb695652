"""Pods and Jobs of a real cluster: see tests/engines/kubernetes. Accounts of its users, too."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.containers import eventually
from kubernetes import client, config

IMAGE = "dltools-test-busybox"
SAMPLES = Path(__file__).parents[2] / "samples/kubernetes"


class ClusterPods:
    """What the administrator of a cluster does in a namespace of its own, until `close`."""

    def __init__(self, kubeconfig: str, node: str = "n1") -> None:
        self.kubeconfig, self.node = kubeconfig, node
        self._client = config.new_client_from_config(kubeconfig)
        self.core, self.batch = client.CoreV1Api(self._client), client.BatchV1Api(self._client)
        self.namespace = f"test-{uuid.uuid4().hex[:8]}"
        self._make_namespace(self.namespace)
        eventually(self._has_account, seconds=30)

    def _make_namespace(self, name: str) -> None:
        try:
            self.core.create_namespace({"metadata": {"name": name}})
        except client.ApiException as error:
            if error.status != 409:
                raise

    def _has_account(self) -> bool:
        found = self.core.list_namespaced_service_account(self.namespace)
        return any(one.metadata.name == "default" for one in found.items)

    def start(
        self,
        name: str,
        script: str,
        *,
        resources: Mapping[str, Mapping[str, str]] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Any:
        """Run a shell script (of busybox) in a pod's container called main, and return the pod."""
        template = _template(script, resources, annotations, spec)
        template["metadata"]["name"] = name
        self.core.create_namespaced_pod(self.namespace, template)
        return self.running(name)

    def running(self, name: str) -> Any:
        def found() -> Any:
            pod = self.pod(name)
            states = [one.state.running for one in pod.status.container_statuses or ()]
            return pod if states and all(states) else None

        return eventually(found, seconds=60)

    def pod(self, name: str) -> Any:
        return self.core.read_namespaced_pod(name, self.namespace)

    def container_id(self, name: str) -> str:
        (status,) = self.pod(name).status.container_statuses
        return str(status.container_id).rpartition("/")[2]

    def close(self) -> None:
        """Remove the pods, and wait until kubelet has let go of them."""
        self.batch.delete_collection_namespaced_job(self.namespace, propagation_policy="Background")
        self.core.delete_collection_namespaced_pod(self.namespace, grace_period_seconds=0)
        self.core.delete_namespace(self.namespace)
        self._client.close()


def _template(
    script: str,
    resources: Mapping[str, Any] | None,
    annotations: Mapping[str, str] | None,
    spec: Mapping[str, Any],
) -> dict[str, Any]:
    command: Sequence[str] = ["sh", "-c", script]
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": command,
        "resources": resources or {},
    }
    return {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "hostNetwork": True,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }
