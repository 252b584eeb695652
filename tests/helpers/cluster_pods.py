"""Pods and Jobs of a real cluster: see tests/engines/kubernetes. Accounts of its users, too."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from helpers.containers import eventually
from kubernetes import client, config, utils

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

    def start_job(
        self,
        name: str,
        script: str,
        *,
        annotations: Mapping[str, str] | None = None,
        claims: Mapping[str, str] | None = None,
    ) -> Any:
        """Start a Job of one pod, and return its pod when that runs. `claims` are mounted at
        paths."""
        template = _template(script, None, annotations, {})
        (container,), spec = template["spec"]["containers"], template["spec"]
        spec["volumes"] = [
            {"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims or ()
        ]
        container["volumeMounts"] = [
            {"name": claim, "mountPath": path} for claim, path in (claims or {}).items()
        ]
        body = {"metadata": {"name": name}, "spec": {"template": template}}
        self.batch.create_namespaced_job(self.namespace, body)
        made = eventually(lambda: self._of_job(name), seconds=30)
        return self.running(made)

    def add_volume(self, name: str, folder: Path) -> None:
        """Add a volume, and a claim of that name that has it, in a folder of this machine."""
        folder.mkdir()
        size, modes = {"storage": "1Mi"}, ["ReadWriteMany"]
        volume = f"{self.namespace}-{name}"
        shared = {"accessModes": modes, "storageClassName": ""}
        made = {**shared, "capacity": size, "hostPath": {"path": str(folder)}}
        claim = {**shared, "resources": {"requests": size}, "volumeName": volume}
        self.core.create_persistent_volume({"metadata": {"name": volume}, "spec": made})
        self.core.create_namespaced_persistent_volume_claim(
            self.namespace, {"metadata": {"name": name}, "spec": claim}
        )

    def _of_job(self, name: str) -> str:
        found = self.core.list_namespaced_pod(self.namespace, label_selector=f"job-name={name}")
        return str(found.items[0].metadata.name) if found.items else ""

    def running(self, name: str) -> Any:
        """Return a pod when its containers run."""

        def found() -> Any:
            pod = self.pod(name)
            states = [one.state.running for one in pod.status.container_statuses or ()]
            return pod if states and all(states) else None

        return eventually(found, seconds=60)

    def pod(self, name: str) -> Any:
        return self.core.read_namespaced_pod(name, self.namespace)

    def container_id(self, name: str) -> str:
        """Return what the runtime calls a pod's container."""
        (status,) = self.pod(name).status.container_statuses
        return str(status.container_id).rpartition("/")[2]

    def give_rights(self, *files: str, account: str = "dltools-resize") -> str:
        """Apply manifests of samples/kubernetes, and return the token of an account of them."""
        self._make_namespace("dltools")
        for file in files:
            for document in yaml.safe_load_all((SAMPLES / file).read_text()):
                try:
                    utils.create_from_dict(self._client, document)
                except utils.FailToCreateError as error:
                    if any(one.status != 409 for one in error.api_exceptions):
                        raise
        return self.token("dltools", account)

    def token(self, namespace: str, account: str) -> str:
        """Return a token of a service account."""
        asked = {"spec": {"audiences": [], "expirationSeconds": 3600}}
        made = self.core.create_namespaced_service_account_token(account, namespace, asked)
        return str(made.status.token)

    def account(self, name: str) -> str:
        """Make an account without rights, and return its token."""
        self.core.create_namespaced_service_account(self.namespace, {"metadata": {"name": name}})
        return self.token(self.namespace, name)

    def write_kubeconfig(self, path: Path, token: str, **cluster: str) -> Path:
        """Write the configuration of a user who has a token."""
        found = yaml.safe_load(Path(self.kubeconfig).read_text())
        found["clusters"][0]["cluster"] |= cluster
        found["users"] = [{"name": "me", "user": {"token": token}}]
        path.write_text(yaml.safe_dump(found))
        return path

    def kubectl(self, *arguments: str) -> str:
        """Run the cluster's own client as its administrator."""
        program = Path(__file__).parents[1] / "engines/kubernetes"
        done = subprocess.run([program, "kubectl", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

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
