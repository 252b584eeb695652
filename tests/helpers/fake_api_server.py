"""An API server that answers from memory: nodes, pods, and their resizes by an imagined kubelet.

What it answers goes through the models of the official client, which are made from the published
OpenAPI schema: a field that the schema does not have, or that has another type, is refused. What it
refuses, and in which words, is in `api_rules`.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from helpers.api_rules import merged, qos_class, resize_refusals
from helpers.fake_jobs import FakeJobs
from kubernetes import client

SAMPLES = Path(__file__).parents[2] / "samples/kubernetes"
VERSION = {
    **dict.fromkeys(("compiler", "goVersion", "gitCommit", "gitTreeState", "gitVersion"), "x"),
    **dict.fromkeys(("buildDate", "platform"), "x"),
    "major": "1",
    "minor": "36",
}
STARTED = "2025-01-31T12:00:00Z"


class FakeApiServer:
    """Listens on a port of this machine until it is stopped.

    `kubelet` says what becomes of a resize: done, deferred, infeasible, or away, where nothing
    happens. `errors` are answers (status, message) by method and end of a path; `has_resize` is
    false for a server before 1.33.
    """

    def __init__(self, node: str = "n1", cpus: str = "4", server: Any = None) -> None:
        self.node, self.kubelet, self.has_resize = node, "done", True
        self.pods: dict[tuple[str, str], dict[str, Any]] = {}
        self.errors: dict[tuple[str, str], tuple[int, str]] = {}
        self.conflicts = 0
        self.requests: list[tuple[str, str, Any]] = []
        self.merges: list[tuple[Any, Any, Any]] = []
        self.nodes = {node: node_of(node, cpus)}
        self.version = dict(VERSION)
        self.claims: dict[str, dict[str, Any]] = {}
        self.jobs = FakeJobs(self)
        self._lock = threading.RLock()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if server is not None:
            self._server.socket = server.wrap_socket(self._server.socket, server_side=True)
        self.scheme = "http" if server is None else "https"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def kubeconfig(self, path: Path, **cluster: str) -> Path:
        """Write a configuration that names this server."""
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "fake",
                    "clusters": [{"name": "fake", "cluster": {"server": self.url, **cluster}}],
                    "users": [{"name": "me", "user": {"token": "secret"}}],
                    "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "me"}}],
                }
            )
        )
        return path

    def add(
        self,
        pod: str = "train",
        *,
        limit: str = "2",
        request: str = "500m",
        memory: str = "",
        name: str = "main",
        container_id: str = "c1",
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> dict[str, Any]:
        """Add a running pod of one container, and return it. It requests the memory to which it is
        limited."""
        resources: dict[str, Any] = {}
        for kind, value in (("limits", limit), ("requests", request)):
            given = {"cpu": value, "memory": memory}
            if value:
                resources[kind] = {name: one for name, one in given.items() if one}
        made: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod,
                "namespace": "lab",
                "uid": f"uid-{pod}",
                "resourceVersion": "1",
                "generation": 1,
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "nodeName": self.node,
                "containers": [{"name": name, "image": "i", "resources": resources, **spec}],
            },
            "status": {
                "phase": "Running",
                "qosClass": "",
                "conditions": [],
                "containerStatuses": [
                    {
                        "name": name,
                        "image": "i",
                        "imageID": "sha256:1",
                        "ready": True,
                        "restartCount": 0,
                        "containerID": f"containerd://{container_id}",
                        "state": {"running": {"startedAt": STARTED}},
                        "lastState": {},
                        "resources": copy.deepcopy(resources),
                    }
                ],
            },
        }
        made["status"]["qosClass"] = qos_class(made)
        self.pods["lab", pod] = made
        return made

    def restart(self, pod: str, container_id: str) -> None:
        """Let kubelet start the container of a pod again, as another one of the runtime's."""
        (status,) = self.pods["lab", pod]["status"]["containerStatuses"]
        ended = {"exitCode": 1, "containerID": status["containerID"], "startedAt": STARTED}
        status["lastState"] = {"terminated": {**ended, "finishedAt": STARTED}}
        status["containerID"] = f"containerd://{container_id}"
        status["restartCount"] += 1

    def specified(self, pod: str = "train") -> dict[str, Any]:
        """Return the resources that a pod's container asks for."""
        found: dict[str, Any] = self.pods["lab", pod]["spec"]["containers"][0]["resources"]
        return found

    def actual(self, pod: str = "train") -> dict[str, Any]:
        """Return the resources that kubelet has set."""
        (status,) = self.pods["lab", pod]["status"]["containerStatuses"]
        found: dict[str, Any] = status["resources"]
        return found

    def patches(self) -> list[Any]:
        """Return the resources of all resizes that were asked for."""
        return [
            body["spec"]["containers"][0]["resources"]
            for method, _, body in self.requests
            if method == "PATCH"
        ]

    def used_rights(self) -> set[tuple[str, str]]:
        """Return the resources that were asked for, with the verbs."""
        found = set()
        for method, path, _ in self.requests:
            where = urlsplit(path).path
            if where == "/version/":  # everybody may read it
                continue
            parts = where.partition("/v1/")[2].split("/")
            names = parts[2:] if parts[0] == "namespaces" else parts
            verb = "patch" if method == "PATCH" else "list" if len(names) == 1 else "get"
            found.add(("/".join(names[::2]), verb))
        return found

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the object of an answer."""
        with self._lock:
            self.requests.append((method, path, body))
            where = urlsplit(path)
            for (wanted, end), (status, message) in self.errors.items():
                if method == wanted and where.path.endswith(end):
                    return status, failure(status, message)
            if where.path == "/version/":
                return 200, {"kind": "VersionInfo", **self.version}
            parts = where.path.strip("/").split("/")[2:]
            if where.path.startswith("/apis/batch/v1/"):
                return self.jobs.answer(method, parts[2], parts[4], body)
            if parts[2:3] == ["persistentvolumeclaims"]:
                return 200, self.claims[parts[3]]
            if parts[2:] == ["pods"]:
                selector = parse_qs(where.query)["labelSelector"][0]
                return 200, self._items(self.jobs.pods_of(selector.partition("=")[2]))
            if parts[0] == "nodes":
                found = self.nodes.get(parts[1])
                return (200, found) if found else _missing("nodes", parts[1])
            if parts == ["pods"]:
                return 200, self._list(parse_qs(where.query).get("fieldSelector", [""])[0])
            pod = self.pods.get((parts[1], parts[3]))
            if len(parts) > 4 and not self.has_resize:
                return 404, failure(404, "the server could not find the requested resource")
            if pod is None:
                return _missing("pods", parts[3])
            return (200, pod) if method == "GET" else self._resize(pod, body)

    def merged(self, old: dict[str, Any], patch: Any) -> dict[str, Any]:
        """Return an object as a patch leaves it; it, the patch and that are kept in `merges`."""
        new = merged(old, patch)
        self.merges.append((copy.deepcopy(old), patch, copy.deepcopy(new)))
        return new

    def _list(self, selector: str) -> dict[str, Any]:
        node = selector.removeprefix("spec.nodeName=")
        return self._items(
            [one for one in self.pods.values() if one["spec"].get("nodeName") == node]
        )

    @staticmethod
    def _items(pods: list[dict[str, Any]]) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": pods}

    def _resize(self, pod: dict[str, Any], body: Any) -> tuple[int, Any]:
        meta, name = pod["metadata"], pod["metadata"]["name"]
        if self.conflicts:  # kubelet has written the status
            self.conflicts -= 1
            meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        if body["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            text = "the object has been modified; please apply your changes to the latest version"
            return 409, failure(409, f'Operation cannot be fulfilled on pods "{name}": {text}')
        new = self.merged(pod, body)
        if said := ", ".join(resize_refusals(new, pod)):
            return 422, failure(422, f'Pod "{name}" is invalid: {said}')
        if new["spec"] == pod["spec"]:
            return 200, pod
        pod["spec"] = new["spec"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        meta["generation"] += 1
        self._sync(pod)
        return 200, pod

    def _sync(self, pod: dict[str, Any]) -> None:
        """Do as kubelet does with a pod whose specification has changed."""
        (own,), (status,) = pod["spec"]["containers"], pod["status"]["containerStatuses"]
        pod["status"]["conditions"] = []
        if self.kubelet == "done" or status["resources"] == own["resources"]:
            status["resources"] = copy.deepcopy(own["resources"])
        elif self.kubelet in ("deferred", "infeasible"):
            pod["status"]["conditions"] = [
                {
                    "type": "PodResizePending",
                    "status": "True",
                    "reason": self.kubelet.capitalize(),
                    "message": "Node didn't have enough resource: cpu",
                    "observedGeneration": pod["metadata"]["generation"],
                    "lastTransitionTime": STARTED,
                }
            ]


def node_of(name: str, cpus: str) -> dict[str, Any]:
    info = dict.fromkeys(
        (
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        ),
        "x",
    )
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "status": {
            "capacity": {"cpu": cpus, "memory": "8000000Ki"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {**info, "kubeletVersion": "v1.35.0"},
        },
    }


def rights_of(*names: str) -> set[tuple[str, str]]:
    """Return the resources that roles of samples/kubernetes give, with the verbs."""
    return {
        (kind, verb)
        for name in names
        for document in yaml.safe_load_all((SAMPLES / name).read_text())
        for rule in document.get("rules", ())
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }


_REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "Invalid"}


def failure(code: int, message: str) -> dict[str, Any]:
    """Return a Status of a failure."""
    reason = _REASONS.get(code, "InternalError")
    given = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**given, "message": message, "reason": reason, "code": code}


def _missing(kind: str, name: str) -> tuple[int, Any]:
    return 404, failure(404, f'{kind} "{name}" not found')


class _Handler(BaseHTTPRequestHandler):
    fake: FakeApiServer

    def do_GET(self) -> None:
        self._serve(None)

    def do_PATCH(self) -> None:
        assert self.headers["Content-Type"] == "application/strategic-merge-patch+json"
        self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _serve(self, body: Any) -> None:
        if self.headers["Authorization"] != "Bearer secret":
            status, found = 401, failure(401, "Unauthorized")
        else:
            status, found = self.fake.answer(self.command, self.path, body)
        text = json.dumps(checked(found)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


def checked(found: dict[str, Any]) -> dict[str, Any]:
    """Return an object of the API. Raises AssertionError if the schema has it otherwise."""
    if found["kind"] == "VersionInfo":
        return found
    model = getattr(client, f"V1{found['kind']}")
    again = client.ApiClient().sanitize_for_serialization(model.from_dict(found))
    assert _is_part(found, again), (found, again)
    return found


def _is_part(found: Any, of: Any) -> bool:
    """Tell whether all that is said in an object is in another one."""
    if isinstance(found, dict):
        return isinstance(of, dict) and all(
            _is_part(value, of.get(key)) for key, value in found.items() if value not in ({}, [])
        )
    if isinstance(found, list):
        return len(found) == len(of) and all(map(_is_part, found, of))
    return found == of or str(found).rstrip("Z") == str(of).partition("+")[0].rstrip("Z")
