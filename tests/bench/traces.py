"""Public cluster traces and random lists of jobs under each policy as typed, against Docker alone:
mean completion time, makespan, and the job that ends latest by comparison.

    python tests/bench/traces.py [DIRECTORY] [--lists 40] [--jobs 160] [--policies flowcon,srtf]

DIRECTORY holds the traces: Pollux' workloads, Philly's run times, Alibaba's pods of 2023, in
shorter times. A GPU of a trace becomes a CPU here. Each runs on one host and on four, with threads
that sleep and that spin. On several hosts each job is placed where Docker alone would have placed
it, so that what differs is the order alone; `free` lets it go to the least loaded host under each
policy.

A random list has 2 to 40 jobs of 1 to 8 threads on 2 to 64 CPUs, with heavy or light tails, from a
burst to sparse. srtf runs with lengths that logs say, and without (`unsaid`). `bound` is the mean
over that of shortest first with known lengths: on one host whole jobs, packed, without contention.
Nothing is asserted.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from cluster_traces import alibaba_jobs, philly_jobs, pollux_jobs

from dltools.observations.outcomes import JobResult
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.options import RealisationOptions
from dltools.sim.lower_bound import mean_completion
from dltools.sim.reaction import Reaction
from dltools.sim.simulation import Simulation
from dltools.sim.workload import HostSpec, Job, LearningCurve, Workload, workload_of

POLICIES = ("flowcon", "srtf", "las", "fair", "slaq", "tradl", "specon")
REACTION = Reaction(2.0, 0.1)
SHORTER = 200.0
"""By what Alibaba's times are divided: they span 116 days, too long to look at a host every two
seconds."""


@dataclass(frozen=True)
class Case:
    """A trace on hosts of so many CPUs."""

    title: str
    workload: Workload
    is_free: bool = False


def ends(workload: Workload, policy: str) -> list[JobResult]:
    found = registry.get(policy, [])
    made = Simulation(
        workload, found, build(found.parameters, {}), RealisationOptions(), reaction=REACTION
    )
    return made.run()


def placed(workload: Workload, results: list[JobResult]) -> Workload:
    nodes = {one.name: one.node for one in results}
    jobs = [replace(job, node=nodes[job.name] or "") for job in workload.jobs]
    return replace(workload, jobs=tuple(jobs))


@dataclass(frozen=True)
class Outcome:
    """What a policy made of a case: ratios to the bound and to Docker alone."""

    policy: str
    to_bound: float
    mean: float
    makespan: float
    latest: float


def run(task: tuple[Case, tuple[str, ...]]) -> list[Outcome]:
    case, policies = task
    alone = ends(case.workload, "noop")
    workload = case.workload if case.is_free else placed(case.workload, alone)
    bound = shortest_first(workload)
    found = []
    for policy in policies:
        for length in (True, False) if policy == "srtf" else (True,):
            jobs = tuple(replace(job, length=length) for job in workload.jobs)
            results = ends(replace(workload, jobs=jobs), policy)
            mean = fmean(one.completion or 0.0 for one in results)
            pairs = list(zip(results, alone, strict=True))
            found.append(
                Outcome(
                    policy if length else f"{policy}, unsaid",
                    mean / bound,
                    mean / fmean(one.completion or 0.0 for one in alone),
                    max(one.finish or 0.0 for one, _ in pairs)
                    / max(other.finish or 0.0 for _, other in pairs),
                    max(
                        (one.completion or 0.0) / (other.completion or 1.0) for one, other in pairs
                    ),
                )
            )
    return found


def shortest_first(workload: Workload) -> float:
    """Return the mean completion time (s) of shortest first with known lengths: the better of
    shortest in time and in work. On several hosts, the bound of the simulator."""
    if len(workload.hosts) > 1:
        return mean_completion(workload)
    cpus = workload.hosts[0].cpus
    return min(_packed(workload, cpus, in_time=in_time) for in_time in (True, False))


def _packed(workload: Workload, cpus: float, *, in_time: bool) -> float:
    coming = sorted(workload.jobs, key=lambda job: job.arrival, reverse=True)
    left: dict[str, float] = {}
    known = {job.name: job for job in coming}
    clock, total = 0.0, 0.0

    def key(name: str) -> tuple[float, str]:
        return left[name] / (min(known[name].threads, cpus) if in_time else 1.0), name

    while coming or left:
        if not left:
            clock = max(clock, coming[-1].arrival)
        while coming and coming[-1].arrival <= clock + 1e-9:
            job = coming.pop()
            left[job.name] = job.startup + job.work
        room, rates = cpus, dict[str, float]()
        for name in sorted(left, key=key):
            if room <= 1e-9:
                break
            rates[name] = min(float(known[name].threads), room)
            room -= rates[name]
        until = min(clock + left[name] / rate for name, rate in rates.items())
        until = min(until, coming[-1].arrival) if coming else until
        for name, rate in rates.items():
            left[name] -= rate * (until - clock)
            if left[name] <= 1e-7:
                total += until - known[name].arrival
                del left[name]
        clock = until
    return total / len(workload.jobs)


def random_list(seed: int) -> Workload:
    chance = random.Random(seed)
    cpus, count = chance.choice([2, 4, 8, 16, 32, 64]), chance.randint(2, 40)
    is_heavy, gap = chance.random() < 0.5, chance.choice([0, 2, 10, 30, 100])
    spin = chance.choice([0.0, 0.5, 1.0])
    jobs, clock = [], 0.0
    for number in range(count):
        work = min(20_000, 40 * chance.paretovariate(1.1)) if is_heavy else chance.uniform(40, 600)
        threads, epochs = chance.choice([1, 1, 2, 2, 4, 8]), chance.randint(5, 200)
        startup = chance.choice([0, 2, 5])
        curve = LearningCurve(rate=chance.uniform(1, 10), noise=chance.choice([0, 0.02]))
        made = Job(f"j{number}", clock, work * max(1, cpus / 8), threads=threads, epochs=epochs)
        jobs.append(replace(made, startup=startup, spin=spin, curve=curve))
        clock += chance.expovariate(1 / gap) if gap else 0.0
    return workload_of(jobs, [HostSpec("host", float(cpus))], f"list {seed}")


def traces(data: Path, most: int, seeds: int) -> Iterator[Case]:
    found: list[tuple[str, list[Job], float]] = []
    for path in sorted(data.glob("pollux_*.csv")):
        title = path.stem.replace("_workloads", "").replace("__workload", "")
        found.append((title, pollux_jobs(path.read_text())[:most], 32.0))
    philly = data / "philly_runtime_seconds.csv"
    for seed in range(seeds if philly.exists() else 0):
        jobs = philly_jobs(philly.read_text(), seed)[:most]
        gap = fmean(job.work for job in jobs) / 10.0  # ten CPUs' worth of work, on eight
        spread = [replace(job, arrival=k * gap) for k, job in enumerate(jobs)]
        found.append((f"philly, seed {seed}", spread, 8.0))
    pods = data / "alibaba2023_openb_pod_list_default.csv"
    if pods.exists():
        jobs = alibaba_jobs(pods.read_text())[:most]
        begin = min(job.arrival for job in jobs)
        shorter = [
            replace(job, arrival=(job.arrival - begin) / SHORTER, work=job.work / SHORTER)
            for job in jobs
        ]
        found.append((f"alibaba pods / {SHORTER:g}", shorter, 32.0))
    for title, jobs, cpus in found:
        for hosts in (1, 4):
            for spin in (0.0, 1.0):
                made = [replace(job, spin=spin) for job in jobs]
                specs = [HostSpec(f"h{k}", cpus / (2 if hosts > 1 else 1)) for k in range(hosts)]
                workload = workload_of(made, specs, title)
                where = f"{title[:20]} {hosts}x{specs[0].cpus:g} spin {spin:g}"
                yield Case(where, workload)
                if hosts > 1 and not spin:
                    yield Case(f"{where} free", workload, is_free=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--lists", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="the first seed of a random list")
    parser.add_argument("--jobs", type=int, default=160)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--policies", default=",".join(POLICIES))
    options = parser.parse_args()
    policies = tuple(options.policies.split(","))
    seeds = range(options.first, options.first + options.lists)
    cases = [Case(f"list {seed}", random_list(seed)) for seed in seeds]
    if options.data is not None:
        cases += traces(options.data, options.jobs, options.seeds)
    if not cases:
        sys.exit("no list and no trace: give the directory of the traces")
    head = f"{'policy':14s} {'bound':>6s} {'mean':>6s} {'makespan':>8s} {'latest':>6s}"
    print(f"{'jobs, hosts x CPUs':36s} {head}")
    every: dict[str, list[Outcome]] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tasks = ((case, policies) for case in cases)
        for case, found in zip(cases, pool.map(run, tasks), strict=True):
            for one in found:
                every.setdefault(one.policy, []).append(one)
                print(f"{case.title:36s} {_line(one)}", flush=True)
    for found in every.values():
        print(f"{'median':36s} {_line(_all(found, median))}")
        print(f"{'worst':36s} {_line(_all(found, max))}")


def _all(found: list[Outcome], pick: Callable[[list[float]], float]) -> Outcome:
    values = (
        pick([getattr(one, name) for one in found])
        for name in ("to_bound", "mean", "makespan", "latest")
    )
    return Outcome(found[0].policy, *values)


def _line(one: Outcome) -> str:
    return (
        f"{one.policy:14s} {one.to_bound:6.2f} {one.mean:6.3f} {one.makespan:8.3f} "
        f"{one.latest:6.2f}"
    )


if __name__ == "__main__":
    main()
