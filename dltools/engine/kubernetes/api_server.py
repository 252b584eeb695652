"""Requests to an API server, by the official client.

The client is an extra of the package, and is imported when an address asks for it. It finds the
server as kubectl does: by KUBECONFIG, else by ~/.kube/config, else by the account of the pod.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.patience import Patience
from dltools.errors import AccessError, ConfigError, UnavailableError
from dltools.files import home_directory

TIMEOUT_S = 30.0

_MERGE = "application/strategic-merge-patch+json"
"""A patch whose list of containers is merged by their names."""

_LONGEST = 300
"""How much of an answer is told (ours)."""

_AWAY = (429, 502, 503, 504)

NO_RESIZE = "its API server has no pods/resize: Kubernetes 1.33 or later is needed"

T = TypeVar("T")


class ConflictError(Exception):
    """Somebody else has changed the pod since it was read."""


class ApiServer:
    """A connection to one API server. Methods raise `UnavailableError`, `AccessError`, `GoneError`
    and `RefusedError`. Pods and nodes are models of the client."""

    def __init__(self, patience: Patience) -> None:
        """Nothing is asked yet. Raises `ConfigError` if the extra or a configuration is missing."""
        try:
            from kubernetes import client, config
            from urllib3.exceptions import HTTPError
        except ImportError as error:
            raise ConfigError(
                "an API server needs the package kubernetes; pip install 'dltools[kubernetes]'"
            ) from error
        found = client.Configuration()
        home = home_directory() or Path("/nonexistent")
        files = os.environ.get("KUBECONFIG") or str(home / ".kube" / "config")
        try:
            if any(Path(one).expanduser().is_file() for one in files.split(os.pathsep)):
                config.load_kube_config(config_file=files, client_configuration=found)
            else:
                config.load_incluster_config(client_configuration=found)
        except Exception as error:  # the client takes the contents of a file on trust
            raise ConfigError(f"no API server is known; set KUBECONFIG: {_line(error)}") from error
        found.retries = False  # patience has its own
        self.url: str = found.host
        self._api = client.CoreV1Api(connection := client.ApiClient(found))
        self._batch, self._versions = client.BatchV1Api(connection), client.VersionApi(connection)
        self._patience = patience
        self._answered: type[Exception] = client.ApiException
        self._broken: type[Exception] = HTTPError

    def node(self, name: str) -> Any:
        """Return a node. Raises `AccessError` without the right to read it."""
        try:
            return self._ask(lambda: self._api.read_node(name, _request_timeout=TIMEOUT_S))
        except RefusedError as error:
            raise AccessError(f"the API server at {self.url}: {error}") from error
        except GoneError as error:
            raise ConfigError(f"kubernetes:{name}: no node of this name: {error}") from error

    def pods(self, node: str) -> list[Any]:
        """Return the pods of a node."""
        found = self._ask(
            lambda: self._api.list_pod_for_all_namespaces(
                field_selector=f"spec.nodeName={node}", _request_timeout=TIMEOUT_S
            )
        )
        return list(found.items)

    def pod(self, namespace: str, name: str) -> Any:
        """Return one pod."""
        return self._ask(
            lambda: self._api.read_namespaced_pod(name, namespace, _request_timeout=TIMEOUT_S)
        )

    def resize(self, pod: Any, container: str, resources: Mapping[str, Mapping[str, str]]) -> Any:
        """Set resources of a pod's container, and return the pod. Raises `ConflictError` if the pod
        is not as it was read."""
        body = {
            "metadata": {"resourceVersion": pod.metadata.resource_version},
            "spec": {"containers": [{"name": container, "resources": resources}]},
        }
        try:
            return self._ask(
                lambda: self._api.patch_namespaced_pod_resize(
                    pod.metadata.name,
                    pod.metadata.namespace,
                    body,
                    field_manager="dltools",
                    _content_type=_MERGE,
                    _request_timeout=TIMEOUT_S,
                )
            )
        except GoneError as error:
            self.pod(pod.metadata.namespace, pod.metadata.name)  # raises where the pod is gone
            raise RefusedError(NO_RESIZE) from error

    # Jobs

    def version(self) -> tuple[int, int]:
        """Return the version of Kubernetes."""
        found = self._ask(lambda: self._versions.get_code(_request_timeout=TIMEOUT_S))
        major, minor = (re.match(r"\d*", text or "") for text in (found.major, found.minor))
        return int((major and major[0]) or 0), int((minor and minor[0]) or 0)

    def job(self, namespace: str, name: str) -> Any:
        """Return one Job."""
        return self._ask(
            lambda: self._batch.read_namespaced_job(name, namespace, _request_timeout=TIMEOUT_S)
        )

    def job_pods(self, job: Any) -> list[Any]:
        """Return the pods that a Job has made and that are still there."""
        selector = f"batch.kubernetes.io/controller-uid={job.metadata.uid}"
        found = self._ask(
            lambda: self._api.list_namespaced_pod(
                job.metadata.namespace, label_selector=selector, _request_timeout=TIMEOUT_S
            )
        )
        return list(found.items)

    def claim(self, namespace: str, name: str) -> Any:
        """Return a claim of a volume."""
        return self._ask(
            lambda: self._api.read_namespaced_persistent_volume_claim(
                name, namespace, _request_timeout=TIMEOUT_S
            )
        )

    def patch_job(self, job: Any, patch: Mapping[str, Any]) -> None:
        """Change a Job. Raises `ConflictError` if it is not as it was read."""
        version = {"resourceVersion": job.metadata.resource_version}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
        self._ask(
            lambda: self._batch.patch_namespaced_job(
                job.metadata.name,
                job.metadata.namespace,
                body,
                field_manager="dltools",
                _content_type=_MERGE,
                _request_timeout=TIMEOUT_S,
            )
        )

    def _ask(self, request: Callable[[], T]) -> T:
        def once() -> T:
            try:
                return request()
            except self._answered as error:
                raise self._told(error) from error
            except self._broken as error:
                raise UnavailableError(
                    f"no API server answers at {self.url}: {_line(error)}"
                ) from error

        return self._patience.repeat(once)

    def _told(self, error: Any) -> Exception:
        """Return one of our errors for an answer of the server's."""
        said = _message(error.body) or str(error.reason or f"status {error.status}")
        if not error.status:
            return UnavailableError(f"no API server answers at {self.url}: {said}")
        if error.status == 401:
            return AccessError(f"the API server at {self.url} does not know this user: {said}")
        if error.status == 404:
            return GoneError(said)
        if error.status == 409:
            return ConflictError(said)
        if error.status in _AWAY:
            return UnavailableError(f"the API server at {self.url} cannot answer now: {said}")
        return RefusedError(said)


def _message(body: Any) -> str:
    """Return what a Status of the API says, "" where an answer is none."""
    try:
        found = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return ""
    return _line(found.get("message") or "") if isinstance(found, Mapping) else ""


def _line(said: object) -> str:
    """Return what was said in one line. A server puts the whole value that it refuses into what it
    says, and the reason after it: a long line is cut in the middle."""
    line = " ".join(str(said).split())
    return (
        line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    )
