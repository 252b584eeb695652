"""A load for the pipe: containers that come and go at random, and what the pipe makes of it."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from helpers.containers import IMAGE
from helpers.daemon import Daemon
from helpers.tools import command, environment, records

from dltools.errors import DataError
from dltools.observations.formats.registry import read

TRAINING = """\
i=0; while [ $i -lt $STEPS ]; do i=$((i+1))
echo "step $i loss: 0.$((9000 / (i + 10)))"
sleep 1; done; exit $CODE"""
CHOSEN, OTHER = {"load": "yes"}, {"load": "no"}
LIMITS = {"NanoCpus": 1_500_000_000, "CpuShares": 700, "CpusetCpus": ""}
"""What each container starts with, as the engine records it."""

STAGES: Mapping[str, tuple[str, ...]] = {
    "dl-probe": ("-i", "1"),
    "dl-plan": ("--policy", "flowcon", "--realize", "weight", "--set", "itval=2"),
    "dl-apply": ("--label", "load=yes"),
}


@dataclass(frozen=True, slots=True)
class Size:
    memory: float
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Size:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return cls(int(status["VmRSS"].split()[0]) / 1024, descriptors, int(status["Threads"]))


READ_ONLY = """grep -o ' /[^ ]* cgroup2\\? ' /proc/mounts |
while read -r at _; do mount -o remount,bind,ro "$at"; done; exec "$0" "$@"
"""
"""Makes the kernel's limits read-only for a command, as they are for whoever is not root."""


class Pipe:
    """dl-probe | tee | dl-plan | dl-apply, on one engine, with a state of its own."""

    def __init__(
        self,
        url: str,
        home: Path,
        stages: Mapping[str, tuple[str, ...]] = STAGES,
        *,
        asks_for_limits: bool = False,
    ) -> None:
        """`asks_for_limits`: the kernel's files cannot be written, so that the engine is asked."""
        self._env = environment(DOCKER_HOST=url, XDG_STATE_HOME=str(home / "state"))
        self._observed, self._results, self._said = (
            home / name for name in ("observations", "results", "said")
        )
        self._journal = home / "state" / "dltools" / "journal"
        self.stages: dict[str, subprocess.Popen[bytes]] = {}
        source: Any = subprocess.DEVNULL
        with self._said.open("wb") as said, self._results.open("wb") as results:
            for name, arguments in stages.items():
                target = results if name == "dl-apply" else subprocess.PIPE
                words = command(name, *arguments)
                stage = subprocess.Popen(
                    ["unshare", "-m", "sh", "-ec", READ_ONLY, *words] if asks_for_limits else words,
                    stdin=source,
                    stdout=target,
                    stderr=said,
                    env=self._env,
                )
                self.stages[name], source = stage, stage.stdout
                if name == "dl-probe":
                    self._tee = subprocess.Popen(
                        ["tee", self._observed], stdin=source, stdout=subprocess.PIPE
                    )
                    source = self._tee.stdout
        for stage in (*self.stages.values(), self._tee):
            if stage.stdout is not None:
                stage.stdout.close()

    @property
    def said(self) -> str:
        """What the tools have printed to standard error, the end of it."""
        return self._said.read_text(errors="replace")[-2000:]

    @property
    def dead(self) -> list[str]:
        return [name for name, stage in self.stages.items() if stage.poll() is not None]

    def sizes(self) -> dict[str, Size]:
        return {name: Size.of(stage.pid) for name, stage in self.stages.items()}

    def has_sampled(self) -> bool:
        return self._observed.exists() and self._observed.stat().st_size > 0

    def kill(self) -> None:
        for stage in (*self.stages.values(), self._tee):
            stage.kill()
            stage.wait()

    def end(self) -> dict[str, int]:
        self.stages["dl-probe"].terminate()
        self._tee.wait(60)
        return {name: stage.wait(60) for name, stage in self.stages.items()}

    def undo(self) -> int:
        quiet = subprocess.DEVNULL
        words = command("dl-apply", "--undo")
        return subprocess.run(words, env=self._env, stdin=quiet, stdout=quiet).returncode

    @property
    def entries(self) -> int:
        return len(list(self._journal.glob("*"))) if self._journal.exists() else 0

    def results(self) -> list[dict[str, Any]]:
        return records(self._results.read_bytes())

    def rows(self) -> list[dict[str, Any]]:
        wanted = ["time", "kind", "container_id", "event"]
        return [row for row in self.observed(wanted) if row["kind"] in ("node", "event")]

    def observed(self, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return all rows, with these columns or all. A signal may have cut the last ones off."""
        found: list[dict[str, Any]] = []
        if not self.has_sampled():
            return found
        with self._observed.open("rb") as file, suppress(DataError):
            for table in read(file, "observations").tables:
                found += (table.select(columns) if columns else table).to_pylist()
        return found


class Churn:
    """Containers that start, end, are killed and removed at random, one in ten of them not chosen:
    `most` at once, for `longest_s` at most."""

    def __init__(self, daemon: Daemon, most: int, longest_s: int, seed: int) -> None:
        self.most, self.longest_s = most, longest_s
        self.alive: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.touched: list[str] = []
        self.started = self.peak = self.killed = 0
        self._daemon, self._chance = daemon, random.Random(seed)

    def start(self) -> None:
        api, steps = self._daemon.api, self._chance.randint(3, self.longest_s)
        script = TRAINING.replace("$STEPS", str(steps)).replace("$CODE", str(steps % 3))
        labels = CHOSEN if self._chance.random() < 0.9 else OTHER
        limits = api.create_host_config(
            network_mode="none",
            nano_cpus=LIMITS["NanoCpus"],
            cpu_shares=LIMITS["CpuShares"],
            log_config={"type": "json-file", "config": {"max-size": "10k", "max-file": "2"}},
        )
        made = api.create_container(
            IMAGE, [script], entrypoint=["/bin/sh", "-c"], labels=labels, host_config=limits
        )
        api.start(made["Id"])
        self.started += 1
        self.alive[made["Id"]] = time.monotonic() + steps
        self.peak = max(self.peak, len(self.alive))

    def step(self) -> None:
        now = time.monotonic()
        for id_ in [id_ for id_, until in self.alive.items() if now > until + 1]:
            if not self._daemon.api.inspect_container(id_)["State"]["Running"]:
                self._remove(id_)
        if len(self.alive) < self.most:
            self.start()
        elif self._chance.random() < 0.3:
            id_ = self._chance.choice(list(self.alive))
            self._remove(id_)  # as docker rm -f does: killed first
            self.killed += 1

    def end(self) -> None:
        for id_ in list(self.alive):
            self._remove(id_)

    def _remove(self, id_: str) -> None:
        self._check(id_)
        self._daemon.api.remove_container(id_, force=True)
        del self.alive[id_]
        self.ended[id_] = time.time()

    def _check(self, id_: str) -> None:
        """Note a container that was changed although it was not chosen."""
        found = self._daemon.api.inspect_container(id_)
        if found["Config"]["Labels"] == OTHER:
            self._compare(id_, found["HostConfig"])

    def check_all(self) -> None:
        for id_ in self.alive:
            self._compare(id_, self._daemon.api.inspect_container(id_)["HostConfig"])

    def _compare(self, id_: str, config: Mapping[str, Any]) -> None:
        present = {name: config[name] for name in LIMITS}
        if present != LIMITS:
            self.touched.append(f"{id_[:12]} has {present}")


def seconds_of(moment: datetime) -> float:
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
