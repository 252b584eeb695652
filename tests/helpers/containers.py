"""Containers of the tests: started, looked at from outside dltools, and removed again."""

import fcntl
import functools
import inspect
import io
import os
import tarfile
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Action, Op, Plan
from dltools.actions.settings import Settings
from dltools.engine.docker.changes import DockerLimits
from dltools.engine.interface import Container, Engine
from dltools.engine.parts import needed
from dltools.notation.times import format_time

IMAGE = "dltools-test-busybox"
BUSYBOX = Path("/bin/busybox")
APPLETS = ("sh", "awk", "cat", "echo", "head", "printf", "seq", "sleep", "tr", "usleep", "yes")

PATIENCE = float(os.environ.get("DLTOOLS_PATIENCE", "1"))
"""How many times as long as elsewhere things take on this machine: an emulated one is slow."""

STARTS: dict[str, dict[str, Any]] = {
    "none": {},
    "cpus": {"nano_cpus": 1_500_000_000},
    "quota": {"cpu_quota": 120_000},
    "quota and period": {"cpu_quota": 60_000, "cpu_period": 50_000},
    "period alone": {"cpu_period": 50_000},
    "shares": {"cpu_shares": 512},
    "cpuset": {"cpuset_cpus": "0"},
}
"""The ways to start a container with or without CPU limits."""


class ImageError(Exception):
    """No image can be made; the message says what to do."""


@functools.cache
def api() -> Any:
    """docker-py's client, for what dltools itself never does."""
    from docker import from_env

    return from_env(timeout=600).api  # a loaded machine takes its time


def socket_path() -> str:
    return os.environ.get("DOCKER_HOST", "/var/run/docker.sock").removeprefix("unix://")


def build_image(client: Any = None) -> None:
    """Import busybox and its applets as an image, unless it is there."""
    client = client or api()
    with (Path(tempfile.gettempdir()) / "dltools-tests-image").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first of several processes builds it
        if not client.images(IMAGE, quiet=True):
            client.import_image_from_data(_packed(), repository=IMAGE)


def _packed() -> bytes:
    if not BUSYBOX.exists() or "static" not in _linkage():
        raise ImageError(f"{BUSYBOX} is missing or not static: install busybox-static")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(BUSYBOX.resolve(), "bin/busybox")
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return packed.getvalue()


def _linkage() -> str:
    """Tell whether the program needs a loader, from its ELF header: one has an INTERP segment."""
    return "dynamic" if b"/ld-" in BUSYBOX.read_bytes()[:4096] else "static"


@dataclass(frozen=True)
class Job:
    engine: Engine
    id: str
    name: str
    client: Any = None

    @property
    def _api(self) -> Any:
        return self.client or api()

    def inspect(self) -> Container:
        return self.engine.inspect(self.id)

    def record(self, fields: dict[str, Any]) -> None:
        """Have fields changed on the engine's record, as its own command does."""
        needed(self.engine, DockerLimits).update(self.id, fields)

    @property
    def shown_cpus(self) -> float:
        """The quota in cores as `docker inspect` shows it; 0 for none."""
        config = self.inspect().native["HostConfig"]
        if config["NanoCpus"]:
            return float(config["NanoCpus"] / 1e9)
        return float(max(0, config["CpuQuota"]) / (config["CpuPeriod"] or 100_000))

    @property
    def effects(self) -> dict[str, Any]:
        """The limits that a restart would bring about, where several records mean none."""
        found, cpus = self.inspect(), self.shown_cpus
        cpuset = found.native["HostConfig"]["CpusetCpus"]
        return {
            "cpus": cpus if 0 < cpus < self.engine.cpus else None,
            "weight": found.recorded.get("weight", 1024),
            "cpuset": "" if cpuset == f"0-{self.engine.cpus - 1}" else cpuset,
        }

    def directory(self, controller: str) -> Path:
        """The container's cgroup directory, by the layout that every distribution mounts."""
        top = Path("/sys/fs/cgroup")
        for line in Path(f"/proc/{self.inspect().pid}/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if controller in names.split(","):
                return top / controller / path.lstrip("/")
            if not names and (top / "cgroup.controllers").exists():
                return top / path.lstrip("/")
        raise AssertionError(f"no cgroup of {self.name} for {controller}")

    def kernel(self) -> dict[str, str]:
        """All that the kernel's files say of the limits that an action could touch."""
        files = {}
        for controller in ("cpu", "cpuset"):
            directory = self.directory(controller)
            for name in (
                "cpu.cfs_quota_us",
                "cpu.cfs_period_us",
                "cpu.shares",
                "cpu.max",
                "cpu.weight",
                "cpuset.cpus",
            ):
                if (directory / name).exists():
                    files[name] = (directory / name).read_text().strip()
        if "cpu.max" in files and not files["cpuset.cpus"]:  # all, and the engine says which
            files["cpuset.cpus"] = (
                (self.directory("cpuset") / "cpuset.cpus.effective").read_text().strip()
            )
        return files

    @property
    def has_v2(self) -> bool:
        """Whether its limits are in files of cgroup version 2, which has weights of its own."""
        return "cpu.max" in self.kernel()

    @property
    def kernel_cpus(self) -> float | None:
        """The quota in cores that the kernel enforces, None for none."""
        files = self.kernel()
        quota, period = (
            files["cpu.max"].split()
            if "cpu.max" in files
            else (files["cpu.cfs_quota_us"], files["cpu.cfs_period_us"])
        )
        return None if quota in ("max", "-1") else int(quota) / int(period)

    @property
    def kernel_weight(self) -> float:
        files = self.kernel()
        if "cpu.shares" in files:
            return float(files["cpu.shares"])
        return int(files["cpu.weight"]) * 10.24

    @property
    def cpu_seconds(self) -> float:
        directory = self.directory("cpuacct")
        if (directory / "cpuacct.usage").exists():
            return int((directory / "cpuacct.usage").read_text()) / 1e9
        stat = (self.directory("cpu") / "cpu.stat").read_text()
        return int(dict(line.split() for line in stat.splitlines())["usage_usec"]) / 1e6

    def stop(self) -> None:
        self._api.stop(self.id, timeout=0)

    def start(self) -> None:
        self._api.start(self.id)

    def restart(self) -> None:
        self._api.restart(self.id, timeout=0)

    def remove(self) -> None:
        self._api.remove_container(self.id, force=True)

    def log(self) -> bytes:
        return bytes(self._api.logs(self.id))


def on_every_cpu(work: str) -> str:
    """Return shell that does this work as often as there are CPUs, in the background."""
    return f"for _ in $(seq {os.cpu_count()}); do ({work}) & done;"


class Gate:
    """A file that jobs wait for, so that the test says when they go on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.limits = {"binds": [f"{directory}:/gate:ro"]}

    def passed(self, name: str = "open") -> str:
        """Return shell that waits until the gate of this name is opened."""
        return f"until [ -e /gate/{name} ]; do usleep 20000; done"

    def open(self, name: str = "open") -> None:
        (self._directory / name).touch()


class Containers:
    """Starts the containers of one test; `only` makes dl-probe see these and no others."""

    def __init__(self, engine: Engine, image: str, client: Any = None) -> None:
        self.engine = engine
        self.image = image
        self._client = client
        self.started: list[Job] = []
        self._case = uuid.uuid4().hex[:8]
        self.only = ("--label", f"dltools-test.case={self._case}")

    def __call__(
        self,
        script: str = "while :; do sleep 1; done",
        *,
        name: str = "job",
        labels: dict[str, str] | None = None,
        tty: bool = False,
        network: str = "none",
        healthcheck: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        **limits: Any,
    ) -> Job:
        """Start a shell script in a container. `limits` are docker-py's host_config arguments."""
        client = self._client or api()
        own = {"dltools-test": "1", "dltools-test.case": self._case}
        created = client.create_container(
            self.image,
            [script],
            entrypoint=["/bin/sh", "-c"],
            name=f"dltools-test-{self._case}-{name}",
            tty=tty,
            labels=own | (labels or {}),
            healthcheck=healthcheck,
            environment=environment,
            host_config=client.create_host_config(network_mode=network, **limits),
        )
        job = Job(self.engine, created["Id"], f"dltools-test-{self._case}-{name}", self._client)
        self.started.append(job)
        job.start()
        return job

    def remove(self) -> None:
        import docker.errors

        for job in self.started:
            for _ in range(3):
                try:
                    job.remove()
                except docker.errors.NotFound:
                    break
                except docker.errors.APIError:  # a removal is in progress
                    time.sleep(0.2)
        self.started.clear()


def plan_for(job: Job, wanted: Settings, expect: Settings | None = None, **changes: Any) -> bytes:
    """Return a plan with one action, decided now. `changes` go to the action or the plan."""
    import datetime

    now = format_time(datetime.datetime.now(datetime.UTC))
    action = {
        "id": 1,
        "op": Op.UPDATE,
        "host": job.engine.host,
        "container_id": job.id,
        "container_name": job.name,
        "set": wanted,
        "expect": expect or {},
        "reason": "test",
    }
    at = changes.pop("at", now)
    return dump_plan(Plan("test", at, {}, {}, None, (Action(**(action | changes)),), {})).encode()


def eventually(
    look: Callable[[], Any], until: Callable[[Any], object] = bool, *, seconds: float = 120.0
) -> Any:
    """Look again and again until what is seen is as awaited, and return it.

    Fails with what was awaited and what was last seen. The time is a net for what never comes true,
    ample for a machine under any load; an emulated one takes `PATIENCE` times as long.
    """
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while not until(seen := look()):
        if time.monotonic() >= end:
            awaited = _source(look) if until is bool else f"{_source(look)} until {_source(until)}"
            raise AssertionError(f"not within {seconds:g} s: {awaited}; last seen: {seen!r:.2000}")
        time.sleep(0.05)
    return seen


def _source(function: Callable[..., Any]) -> str:
    """Return the name of a function, or the lines that a lambda stands in."""
    name = getattr(function, "__qualname__", repr(function))
    if not name.endswith("<lambda>"):
        return name
    try:
        return " ".join(inspect.getsource(function).split())
    except OSError:
        return name
