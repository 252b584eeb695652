"""Jobs of one pod, and what their controller, the scheduler and kubelet do with them, in memory.

What goes on does so with each request, one step at a time, as in Kubernetes 1.36
(pkg/controller/job). What is refused is in `api_rules`.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from helpers.api_rules import is_suspended, job_refusals

if TYPE_CHECKING:
    from helpers.fake_api_server import FakeApiServer

Object = dict[str, Any]
CHECKPOINT = "/ckpt/model.pt"
_BEGUN = datetime(2026, 1, 31, 12, tzinfo=UTC)


class FakeJobs:
    """The Jobs of a fake server. `full` are nodes with no room, `slow` how many requests a pod
    takes to start, `stops_in` how many to stop; `stuck` is whether pods do not stop at all."""

    def __init__(self, server: FakeApiServer) -> None:
        self._server = server
        self.all: dict[str, Object] = {}
        self.full: set[str] = set()
        self.slow, self.stops_in, self.stuck = 1, 4, False
        self.most_running = 0
        self._made, self._seconds = 0, 0
        self._ages: dict[str, int] = {}

    def add(self, name: str = "job", *, claim: str = "data", **spec: Any) -> Object:
        """Add a Job, let its pod run on the server's first node, and return the Job."""
        template = {
            "metadata": {"annotations": {"dltools.checkpoint": CHECKPOINT}},
            "spec": {
                "restartPolicy": "OnFailure",
                "terminationGracePeriodSeconds": 5,
                "containers": [
                    {
                        "name": "main",
                        "image": "i",
                        "volumeMounts": [{"name": "data", "mountPath": "/ckpt"}],
                    }
                ],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
            },
        }
        self._server.claims[claim] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": "lab"},
            "spec": {"accessModes": ["ReadWriteMany"]},
        }
        job: Object = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": name,
                "namespace": "lab",
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "annotations": {},
                "labels": {},
            },
            "spec": {"parallelism": 1, "completions": 1, "template": template, **spec},
            "status": {"conditions": [], "startTime": self._now()},
        }
        self.all[name] = job
        for _ in range(4 + 2 * self.slow):
            self.advance()
        return job

    def pods_of(self, uid: str) -> list[Object]:
        """Return the pods of a Job."""
        return [
            pod
            for pod in self._server.pods.values()
            if pod["metadata"].get("labels", {}).get("batch.kubernetes.io/controller-uid") == uid
        ]

    def running(self) -> list[str]:
        """Return the nodes where pods of Jobs have processes, those that stop too."""
        return [
            pod["spec"]["nodeName"]
            for job in self.all.values()
            for pod in self.pods_of(job["metadata"]["uid"])
            if pod["status"]["phase"] == "Running"
        ]

    def finish(self, name: str = "job") -> None:
        """Let a Job's pod succeed."""
        job = self.all[name]
        for pod in self.pods_of(job["metadata"]["uid"]):
            pod["status"]["phase"] = "Succeeded"
        job["status"]["conditions"] = [_condition("Complete", True)]

    def answer(self, method: str, namespace: str, name: str, body: Any) -> tuple[int, Object]:
        """Return the status and the object of an answer."""
        assert namespace == "lab"
        self.advance()
        job = self.all.get(name)
        if job is None:
            return 404, _failure(404, f'jobs.batch "{name}" not found')
        return (200, job) if method == "GET" else self._patch(job, body)

    def _patch(self, job: Object, body: Any) -> tuple[int, Object]:
        meta, spec, name = job["metadata"], job["spec"], job["metadata"]["name"]
        if body["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            return 409, _failure(409, f'Operation cannot be fulfilled on jobs.batch "{name}"')
        new = self._server.merged(job, body)
        if said := ", ".join(job_refusals(new, job, self._minor)):
            return 422, _failure(422, f'Job.batch "{name}" is invalid: {said}')
        if (new["spec"], new["metadata"]) != (spec, meta):
            for old, changed in ((meta, new["metadata"]), (spec, new["spec"])):
                old.clear()
                old.update(changed)
            self._touch(job)
        return 200, job

    @property
    def _minor(self) -> int:
        return int(self._server.version["minor"])

    # What goes on

    def advance(self) -> None:
        """Let the controller, the scheduler and kubelet do what is next."""
        self._seconds += 1
        for job in self.all.values():
            if not any(one["type"] == "Complete" for one in job["status"]["conditions"]):
                self._sync(job)
        self.most_running = max(self.most_running, len(self.running()))

    def _sync(self, job: Object) -> None:
        pods = self.pods_of(job["metadata"]["uid"])
        active = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
        status = job["status"]
        for pod in pods:
            self._kubelet(pod)
        if job["spec"].get("suspend"):
            for pod in active:
                pod["metadata"]["deletionTimestamp"] = self._now()
                self._ages[pod["metadata"]["name"]] = 0
            if not is_suspended(job):
                status["conditions"] = [_condition("Suspended", True)]
                if self._minor >= 36:
                    status.pop("startTime", None)
                self._touch(job)
            active = []
        else:
            if is_suspended(job):
                status["conditions"] = [_condition("Suspended", False)]
                self._touch(job)
            if "startTime" not in status:
                status["startTime"] = self._now()
                self._touch(job)
            if not active:
                active = [self._make(job)]
        if status.get("active", 0) != len(active):
            status["active"] = len(active)
            self._touch(job)

    def _make(self, job: Object) -> Object:
        self._made += 1
        name = f"{job['metadata']['name']}-{self._made}"
        template = copy.deepcopy(job["spec"]["template"])
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
        meta = job["metadata"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **template["metadata"],
                "name": name,
                "namespace": "lab",
                "uid": f"uid-{name}",
                "resourceVersion": "1",
                "creationTimestamp": self._now(),
                "labels": {"batch.kubernetes.io/controller-uid": meta["uid"]},
                "ownerReferences": [{**owner, "name": meta["name"], "uid": meta["uid"]}],
            },
            "spec": template["spec"],
            "status": {"phase": "Pending", "qosClass": "BestEffort", "conditions": []},
        }
        self._server.pods["lab", name] = pod
        return pod

    def _kubelet(self, pod: Object) -> None:
        """Schedule, start or stop a pod."""
        meta, status = pod["metadata"], pod["status"]
        age = self._ages[meta["name"]] = self._ages.get(meta["name"], 0) + 1
        if "deletionTimestamp" in meta:
            if status["phase"] in ("Pending", "Failed"):
                del self._server.pods["lab", meta["name"]]
            elif age > self.stops_in and not self.stuck:
                status["phase"] = "Failed"  # kubelet says so before it lets go of the pod
            return
        if not pod["spec"].get("nodeName"):
            fit = [one for one in _nodes(pod, list(self._server.nodes)) if one not in self.full]
            if not fit:
                said = {"reason": "Unschedulable", "message": "0/2 nodes are available"}
                status["conditions"] = [{"type": "PodScheduled", "status": "False", **said}]
                return
            pod["spec"]["nodeName"] = fit[0]
            status["conditions"], self._ages[meta["name"]] = [], 0
        elif status["phase"] == "Pending" and age > self.slow:
            status["phase"] = "Running"
            status["containerStatuses"] = [
                {
                    "name": "main",
                    "image": "i",
                    "imageID": "sha256:1",
                    "ready": True,
                    "restartCount": 0,
                    "containerID": f"containerd://c-{meta['name']}",
                    "state": {"running": {"startedAt": "2025-01-31T12:00:00Z"}},
                }
            ]

    def _touch(self, job: Object) -> None:
        meta = job["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)

    def _now(self) -> str:
        at = _BEGUN + timedelta(seconds=self._seconds)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _nodes(pod: Object, names: list[str]) -> list[str]:
    """Return the nodes that a pod's affinity allows."""
    affinity = pod["spec"].get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not required:
        return names
    return [
        name
        for name in names
        if any(
            all(name in one["values"] for one in term.get("matchFields", []))
            for term in required["nodeSelectorTerms"]
        )
    ]


def _condition(type_: str, is_true: bool) -> Object:
    return {"type": type_, "status": "True" if is_true else "False"}


def _failure(code: int, message: str) -> Object:
    from helpers.fake_api_server import failure

    return failure(code, message)
