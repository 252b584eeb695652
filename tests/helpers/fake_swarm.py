"""A Swarm in memory: one service of one task on the hosts of a `World`."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from helpers.fake_hosts import CHECKPOINT, FakeHost, World

from dltools.engine.docker.http import Params
from dltools.engine.docker.swarm import SERVICE, Swarm
from dltools.engine.interface import GoneError, RefusedError

ID = "s" * 25
LABELS = {"dltools.checkpoint": CHECKPOINT, SERVICE: ID}
_BEGUN = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass
class SwarmWorld(World):
    """Two nodes, `a` with the service's task. `lag`: how many requests to the manager a task takes
    to start, and to stop. `tight`: nodes on which Swarm finds no room."""

    lag: int = 2
    tight: str = ""
    manager: FakeManager = field(init=False)

    def __post_init__(self) -> None:
        self.hosts = {name: SwarmNode(self, name) for name in "ab"}
        self.manager = FakeManager(self)
        self.manager.start("a")
        for one in self.hosts["a"].containers.values():
            one.state = "running"
        self.manager.tasks[0]["Status"]["State"] = "running"
        for host in self.hosts.values():
            host.parts = (Swarm(self.manager),)


class SwarmNode(FakeHost):
    """A host that is a node of the Swarm; both are managers."""

    @property
    def node_id(self) -> str:
        return f"id-{self.host}"

    def has_task_of(self, service_id: str) -> bool:
        return bool(
            self._world.call(
                lambda: any(
                    one.state == "running" and one.labels[SERVICE] == service_id
                    for one in self.containers.values()
                )
            )
        )


class FakeManager:
    """The part of a manager's API that a move needs. What Swarm does goes on with each request."""

    is_local = True

    def __init__(self, world: SwarmWorld) -> None:
        self._world = world
        self.version = 1
        self.updated = _BEGUN
        self.tasks: list[dict[str, Any]] = []
        self.spec: dict[str, Any] = {
            "Name": "job",
            "Labels": {},
            "Mode": {"Replicated": {"Replicas": 1}},
            "TaskTemplate": {"Placement": {"Constraints": []}},
        }

    @property
    def replicas(self) -> int:
        return int(self.spec["Mode"]["Replicated"]["Replicas"])

    @property
    def constraints(self) -> list[str]:
        return list(self.spec["TaskTemplate"]["Placement"]["Constraints"])

    def json(self, method: str, path: str, params: Params = {}, body: Any = None) -> Any:  # noqa: B006
        def work() -> Any:
            self._go_on()
            if path.startswith("/nodes/"):
                return {
                    "ID": path.rpartition("/")[2],
                    "Spec": {"Availability": "active"},
                    "Status": {"State": "ready"},
                }
            if path == "/tasks":
                return copy.deepcopy(self.tasks)
            if not path.startswith(f"/services/{ID}"):
                raise GoneError("no such service")
            if method == "GET":
                return {
                    "ID": ID,
                    "Version": {"Index": self.version},
                    "Spec": self.spec,
                    "UpdatedAt": self.updated.isoformat(),
                }
            if params["version"] != self.version:
                raise RefusedError("update out of sequence")
            self.spec, self.version = copy.deepcopy(body), self.version + 1
            self.updated = self._now()
            return {}

        return self._world.call(work)

    def start(self, host: str) -> None:
        """Make a task, which starts after a while."""
        made = self._world.hosts[host].add(f"job.1.{len(self.tasks)}", LABELS, "no", "created")
        self.tasks.append(
            {
                "NodeID": f"id-{host}",
                "CreatedAt": self._now().isoformat(),
                "age": 0,
                "Status": {"State": "starting", "ContainerStatus": {"ContainerID": made.id}},
            }
        )

    def _now(self) -> datetime:
        return _BEGUN + timedelta(seconds=self._world.calls)

    def _go_on(self) -> None:
        """Do what a Swarm does of itself."""
        wanted = self.replicas
        live = [one for one in self.tasks if one["Status"]["State"] in ("starting", "running")]
        pending = [one for one in self.tasks if one["Status"]["State"] == "pending"]
        for task in live:
            task["age"] += 1
            host = self._world.hosts[task["NodeID"].removeprefix("id-")]
            container = host.containers[task["Status"]["ContainerStatus"]["ContainerID"]]
            if not wanted and task["age"] >= self._world.lag:
                del host.containers[container.id]
                self.tasks.remove(task)
            elif task["Status"]["State"] == "starting" and task["age"] >= self._world.lag:
                if self._world.bad_host == host.host:
                    task["Status"] = {"State": "failed", "Err": "it exits with 1"}
                    del host.containers[container.id]
                else:
                    task["Status"]["State"] = container.state = "running"
                    self._world.started_at = self._world.calls
        if not wanted:
            for task in pending:
                self.tasks.remove(task)
        if wanted and not live and not pending:
            self._place()

    def _place(self) -> None:
        names = [one.partition("==id-")[2] for one in self.constraints]
        fits = [
            host
            for host in self._world.hosts
            if all(host == one for one in names) and host not in self._world.tight
        ]
        if fits:
            self.start(fits[0])
        else:
            self.tasks.append(
                {
                    "CreatedAt": self._now().isoformat(),
                    "Status": {"State": "pending", "Err": "no suitable node"},
                }
            )
