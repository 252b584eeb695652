"""Trainings whose CPUs follow the plans that are made of them: the pipe without its processes."""

from collections.abc import Callable
from dataclasses import dataclass

from helpers.observed_rows import at, container, node, point

from dltools.actions.settings import Settings
from dltools.observations.table import Row, to_table
from dltools.plan.planner import Planner
from dltools.sim.cpu_sharing import allocate, speed

CPUS, STEP_S, APART_S, THREADS = 2.0, 2.0, 10.0, 2


@dataclass
class Training:
    """A training of two threads that reports after each CPU second of useful work."""

    name: str
    started_s: float
    spin: float
    cpu: float = 0.0
    done: float = 0.0
    weight: float = 1024.0

    def run(self, now: float, cores: float) -> list[Row]:
        """Run for a step with so many cores; return the reports."""
        rate = speed(cores, THREADS, CPUS, self.spin)
        first = int(self.done + 1e-9) + 1
        begun, self.done, self.cpu = self.done, self.done + rate * STEP_S, self.cpu + cores * STEP_S
        return [
            point(now + (report - begun) / rate, self.name, 1 / report, step=report)
            for report in range(first, int(self.done + 1e-9) + 1)
        ]

    def row(self, now: float) -> Row:
        return container(
            now,
            self.name,
            self.cpu,
            cpu_weight=self.weight,
            thread_count=THREADS,
            started_at=at(self.started_s),
            role="training",
        )


def nobody(now: float, jobs: list[Training]) -> None:
    """Change nothing."""


def follow(
    planner: Planner,
    spins: tuple[float, ...],
    until_s: float,
    meddle: Callable[[float, list[Training]], None] = nobody,
) -> list[Row]:
    """Return the rows of trainings, ten seconds apart, that get what the plans of `planner` say.
    `meddle` may change them at each time (s), after the plan."""
    jobs = [Training(f"j{k}", APART_S * k, spin) for k, spin in enumerate(spins)]
    reports: list[Row] = []
    every: list[Row] = []
    now = 0.0
    while now <= until_s:
        running = [job for job in jobs if job.started_s <= now]
        sample = [*reports, node(now, CPUS), *(job.row(now) for job in running)]
        every += sample
        planner.add(to_table(sorted(sample, key=lambda row: row["time"])))
        planner.complete()
        for action in planner.plan({}, state=False).actions:
            (job,) = (job for job in jobs if job.name == action.container_name)
            job.weight = action.set.get("weight", job.weight)
        meddle(now, jobs)
        limits = [Settings(weight=job.weight) for job in running]
        cores = allocate([float(THREADS)] * len(running), limits, CPUS)
        reports = [
            row for job, share in zip(running, cores, strict=True) for row in job.run(now, share)
        ]
        now += STEP_S
    return sorted(every, key=lambda row: row["time"])
