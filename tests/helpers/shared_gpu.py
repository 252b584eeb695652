"""Jobs that share a GPU, planned for and paused as in a live run, in virtual time.

The GPU is `gpu_stand_in`, without its socket; turns are those of `dltools.apply`; plans those of a
planner that sees a sample every two seconds. Nothing waits, and a run is always the same.

NVML's answers are as coarse as on a card where several programs share it (seen on an H200): each
0.2 s is attributed as a whole to one program that ran in it.
"""

import math
import random
from dataclasses import dataclass, field
from typing import Any

from helpers.gpu_stand_in import UUID, Program, StandIn
from helpers.observed_rows import container, gpu, job_id, node, point

from dltools.apply.turn_queues import TurnQueues
from dltools.apply.turn_schedule import Turn
from dltools.observations.table import Row, to_table
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.realisation.options import Mode, RealisationOptions

STEP_S, SAMPLE_S, ATTRIBUTED_S = 0.01, 2.0, 0.2
GIB = 1 << 30


@dataclass
class Job:
    """A program: a training, or a server whose requests follow each other. A step or a request
    computes for `cpu` seconds and has a kernel of `kernel` seconds."""

    name: str
    kernel: float = 0.02
    cpu: float = 0.001
    target: float | None = None
    labels: str | None = None
    ahead: int = 2
    runs: bool = True
    quota: float | None = None
    used: float = 0.0  # CPU seconds
    computes: float = 0.0  # of the present request
    waits: bool = False  # for its kernel
    begun: float = 0.0
    times: list[float] = field(default_factory=list)
    every: list[tuple[float, float]] = field(default_factory=list)

    @property
    def serves(self) -> bool:
        return self.target is not None

    def advance(self, now: float, program: Program) -> None:
        """Use the CPU for a step of time, and ask for kernels."""
        if not self.runs:
            return
        if not self.serves:
            while len(program.kernels) < self.ahead:
                program.kernels.append(self.kernel)
                self.used += self.cpu
            return
        if self.waits and not program.kernels:
            self.waits = False
            self.times.append(now - self.begun)
            self.every.append((now, now - self.begun))
        if self.waits:
            return
        if self.computes <= 0:
            self.begun, self.computes = now, self.cpu
        span = STEP_S if self.quota is None else min(STEP_S, self.quota * STEP_S)
        done = min(span, self.computes)
        self.computes -= done
        self.used += done
        if self.computes <= 1e-9:
            program.kernels.append(self.kernel)
            self.waits = True


class SharedGpu:
    """The jobs on one GPU; `policy` None leaves them alone."""

    def __init__(self, policy: str | None, mode: Mode | None = None, *jobs: Job) -> None:
        self.jobs = {job.name: job for job in jobs}
        self.gpu = StandIn()
        for number, name in enumerate(self.jobs):
            self.gpu.programs[name] = Program(number)
        self.queues, self.now = TurnQueues(), 0.0
        self.planner: Planner | None = None
        if policy is not None:
            found = registry.get(policy, [])
            self.planner = Planner(found, found.parameters(), RealisationOptions(mode))
        self._told = dict.fromkeys(self.jobs, 0.0)
        self._attributed = dict.fromkeys(self.jobs, 0.0)
        self._random = random.Random(0)
        self.marks: list[tuple[float, dict[str, float]]] = []

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until - 1e-9:
            self.queues.look(self.now, {}, None)
            for turn in self.queues.turns:
                self.jobs[turn.name].runs = self.queues.may_run(turn)
            for name, job in self.jobs.items():
                job.advance(self.now, self.gpu.programs[name])
            self.gpu.advance(STEP_S)
            self.now = round(self.now + STEP_S, 6)
            if round(self.now / STEP_S) % round(ATTRIBUTED_S / STEP_S) == 0:
                self._attribute()
            if round(self.now / STEP_S) % round(SAMPLE_S / STEP_S) == 0:
                self._sample()

    def _attribute(self) -> None:
        used = {name: one.used - self._told[name] for name, one in self.gpu.programs.items()}
        self._told = {name: one.used for name, one in self.gpu.programs.items()}
        if total := math.fsum(used.values()):
            (name,) = self._random.choices(list(used), list(used.values()))
            self._attributed[name] += total

    def _sample(self) -> None:
        used = {name: one.used for name, one in self.gpu.programs.items()}
        self.marks.append((self.now, used))
        if self.planner is not None:
            self.planner.add(to_table(self._rows()))
            self.planner.complete()
            self._apply(self.planner)
        self._attributed = dict.fromkeys(self.jobs, 0.0)

    def _rows(self) -> list[Row]:
        rows: list[Row] = [{**node(self.now, 16.0), "cpu_seconds": self.now}]
        turns = {turn.name: turn for turn in self.queues.turns}
        for name, job in self.jobs.items():
            ratio = min(1.0, self._attributed[name] / SAMPLE_S)
            more: dict[str, Any] = {"thread_count": 4, "demand_cores": 0.2, "labels": job.labels}
            more["cpu_limit_cores"] = 16.0 if job.quota is None else job.quota
            more["role"] = "server" if job.serves else "training"
            if name in turns:
                more |= {"turn_seconds": turns[name].seconds, "turn_queue": UUID}
            rows.append(container(self.now, name, job.used, **more))
            size = {"gpu_memory_used_bytes": GIB, "gpu_memory_limit_bytes": 80 * GIB}
            rows.append(gpu(self.now, name, 0, ratio, **size))
            if not job.serves:
                step = round(self.gpu.programs[name].used / job.kernel)
                rows.append(point(self.now, name, 1 / (1 + self.now), step=step))
            elif job.times:
                mean = math.fsum(job.times) / len(job.times)
                rows.append(point(self.now, name, mean, "latency_seconds"))
                job.times = []
        return rows

    def _apply(self, planner: Planner) -> None:
        names = {job_id(name): name for name in self.jobs}
        turns = []
        for action in planner.plan({}).actions:
            job = self.jobs[names[action.container_id]]
            if "turn_s" in action.set:
                group, turn_s = action.set["group"], action.set["turn_s"]
                period_s = action.set.get("period_s", 0.0)
                queue = action.set.get("queue", "")
                turns.append(
                    Turn(action.container_id, job.name, group, turn_s, queue, period_s=period_s)
                )
            elif "cpus" in action.set:
                job.quota = action.set["cpus"]
        self.queues.replace(turns, self.now)
        self.queues.drop_settled()
        on = {turn.name for turn in self.queues.turns}
        for name, job in self.jobs.items():
            job.runs = job.runs or name not in on

    def shares(self, seconds: float) -> dict[str, float]:
        """Return what each job had of the GPU in the last seconds."""
        begun, before = next(m for m in self.marks if m[0] >= self.now - seconds - 1e-6)
        now, after = self.marks[-1]
        return {name: (after[name] - before[name]) / (now - begun) for name in after}

    def responses(self, name: str, seconds: float) -> list[float]:
        every = self.jobs[name].every
        return sorted(time for at, time in every if at >= self.now - seconds)
