"""The jobs as services of a Swarm: started where the file says, watched until they have ended."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from dltools.engine.docker.answers import engine_time
from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.parts import part
from dltools.engine.registry import host_address
from dltools.engine.services import Services
from dltools.observations.formats.registry import read_table
from dltools.sim.workload import Job, Workload
from live_cluster.arms import Arm
from live_cluster.pipe import Pipe

TRAIN = Path(__file__).resolve().parents[2] / "digits" / "train.py"
SERVICE = "com.docker.swarm.service.name"
_LIMIT_S = 900.0
_POLL_S = 2.0
_EPOCH = re.compile(r"epoch (\d+) loss \S+ val_loss (\S+)")


class ClusterError(Exception):
    """The cluster does not do what it should; the message says what."""


@dataclass(frozen=True)
class Seen:
    """A container of a job, on a node."""

    url: str
    id: str
    state: str


@dataclass
class LiveJob:
    """A job of a run. Times are in seconds: `begun` from the first start of all to its own,
    `completion` from its start to its end. `nodes` and `containers`: where it ran, in order;
    `resumed`: the last epoch that dl-probe saw before each move, and the first after it; `loss`:
    its last one."""

    name: str
    begun: float = 0.0
    completion: float = 0.0
    nodes: list[str] = field(default_factory=list)
    resumed: list[tuple[int, int]] = field(default_factory=list)
    loss: str = ""
    containers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LiveRun:
    """What became of the jobs under an arm."""

    arm: str
    jobs: Sequence[LiveJob]

    @property
    def makespan(self) -> float:
        """From the first start to the last end (s)."""
        return max(job.begun + job.completion for job in self.jobs)

    @property
    def completions(self) -> Mapping[str, float]:
        """Completion times (s) by job."""
        return {job.name: job.completion for job in self.jobs}


class Cluster:
    """The nodes, of which the first manages the Swarm."""

    def __init__(self, urls: Sequence[str]) -> None:
        """Ask each node for its name. Raises `ClusterError`."""
        self.urls = urls
        swarm = part(DockerEngine(connect(host_address(urls[0]))), Services)
        if swarm is None:
            raise ClusterError(f"{urls[0]} manages no Swarm")
        self.swarm = swarm
        self.names = {url: docker(url, "info", "--format", "{{.Name}}") for url in urls}

    def manage(self, *arguments: str) -> str:
        """Return what the docker command prints on the manager."""
        return docker(self.urls[0], *arguments)

    def containers(self) -> dict[str, Seen]:
        """Return the newest container of each service, running or not."""
        shown = '{{.Label "' + SERVICE + '"}}\t{{.ID}}\t{{.State}}\t{{.CreatedAt}}'
        found: list[tuple[str, str, Seen]] = []
        for url in self.urls:
            words = ("ps", "-a", "--no-trunc", "--filter", f"label={SERVICE}", "--format", shown)
            for line in docker(url, *words).splitlines():
                name, id_, state, created = line.split("\t")
                found.append((created, name, Seen(url, id_, state)))
        return {name: seen for _, name, seen in sorted(found, key=lambda one: one[0])}

    def clear(self) -> None:
        """Remove all services, and wait until none of their containers is left."""
        if names := self.manage("service", "ls", "--quiet").split():
            self.manage("service", "rm", *names)
        until = time.monotonic() + 60
        while any(docker(url, "ps", "-aq", "--filter", f"label={SERVICE}") for url in self.urls):
            if time.monotonic() > until:
                raise ClusterError("containers of removed services do not end")
            time.sleep(_POLL_S)


def docker(url: str, *arguments: str) -> str:
    """Return what the docker command prints on a node. Raises `ClusterError`."""
    done = subprocess.run(
        ["docker", "-H", url, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ClusterError(f"docker {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def run_arm(cluster: Cluster, arm: Arm, workload: Workload, folder: Path) -> LiveRun:
    """Run all jobs under an arm until they have ended."""
    cluster.clear()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pipe = Pipe(arm, cluster.urls[0], folder)
    try:
        for job in workload.jobs:
            _start(cluster, job, folder / "checkpoints" / job.name)
        first = _await_start(cluster, workload)
        for job in workload.jobs:  # now they may move; unlike docker's own, this starts none anew
            cluster.swarm.change(job.name, constraints=[])
        jobs = {
            job.name: LiveJob(job.name, (first[job.name] - min(first.values())).total_seconds())
            for job in workload.jobs
        }
        _watch(cluster, workload, jobs, first)
    finally:
        pipe.stop()
        cluster.clear()
    _note_resumed(jobs.values(), pipe.recording)
    return LiveRun(arm.name, list(jobs.values()))


def _start(cluster: Cluster, job: Job, folder: Path) -> None:
    folder.mkdir(parents=True)
    spec = job.container
    labels = [
        word
        for key, value in spec.labels.items()
        for word in ("--container-label", f"{key}={value}")
    ]
    cluster.manage(
        "service",
        "create",
        "--detach",
        "--no-resolve-image",
        "--name",
        job.name,
        "--restart-condition",
        "none",
        "--stop-grace-period",
        "20s",
        "--constraint",
        f"node.hostname=={job.node}",
        "--mount",
        f"type=bind,source={folder.resolve()},target=/ckpt",
        "--mount",
        f"type=bind,source={TRAIN},target=/usr/local/bin/train,readonly",
        *labels,
        spec.image,
        *spec.command,
    )


def _await_start(cluster: Cluster, workload: Workload) -> dict[str, datetime]:
    """Return when each job has started."""
    until = time.monotonic() + 60
    while True:
        seen = cluster.containers()
        started = {name: _times(one)[0] for name, one in seen.items() if one.state == "running"}
        if len(started) == len(workload.jobs):
            return {name: at for name, at in started.items() if at is not None}
        if time.monotonic() > until:
            missing = {job.name for job in workload.jobs} - started.keys()
            raise ClusterError(f"{', '.join(sorted(missing))} did not start within a minute")
        time.sleep(_POLL_S)


def _watch(
    cluster: Cluster, workload: Workload, jobs: Mapping[str, LiveJob], first: Mapping[str, datetime]
) -> None:
    """Follow the jobs from node to node until all have ended."""
    open_jobs = {job.name: job for job in workload.jobs}
    until = time.monotonic() + _LIMIT_S
    while open_jobs:
        if time.monotonic() > until:
            raise ClusterError(f"{', '.join(open_jobs)} did not end within {_LIMIT_S:.0f} s")
        for name, seen in cluster.containers().items():
            if name not in open_jobs or seen.state not in ("running", "exited"):
                continue
            job = jobs[name]
            if seen.id not in job.containers:
                job.nodes.append(cluster.names[seen.url])
                job.containers.append(seen.id)
            if seen.state != "exited":
                continue
            last = _last_epoch(seen)
            if last is not None and last[0] >= open_jobs[name].epochs:
                ended = _times(seen)[1]
                assert ended is not None
                job.completion = (ended - first[name]).total_seconds()
                job.loss = last[1]
                del open_jobs[name]
        time.sleep(_POLL_S)


def _note_resumed(jobs: Iterable[LiveJob], recording: Path) -> None:
    """Note the epochs around each move, from what dl-probe has seen."""
    with recording.open("rb") as stream:
        table = read_table(stream, recording.name)
    rows = table.select(["container_id", "epoch"]).to_pylist()
    epochs: dict[str, list[float]] = {}
    for row in rows:
        if row["epoch"] is not None:
            epochs.setdefault(row["container_id"], []).append(row["epoch"])
    for job in jobs:
        for before, after in pairwise(job.containers):
            ends = max(epochs.get(before, [0])), min(epochs.get(after, [0]))
            job.resumed.append((round(ends[0]), round(ends[1])))


def _last_epoch(seen: Seen) -> tuple[int, str] | None:
    """Return the last epoch that a container has printed, with the loss."""
    try:
        found = _EPOCH.findall(docker(seen.url, "logs", "--tail", "1", seen.id))
    except ClusterError:  # it has just been removed
        return None
    return (int(found[-1][0]), found[-1][1]) if found else None


def _times(seen: Seen) -> tuple[datetime | None, datetime | None]:
    shown = "{{.State.StartedAt}} {{.State.FinishedAt}}"
    started, ended = docker(seen.url, "inspect", "--format", shown, seen.id).split()
    return engine_time(started), engine_time(ended)
