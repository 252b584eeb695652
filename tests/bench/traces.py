"""Public cluster traces under each policy as typed, against Docker alone: mean completion time,
makespan, and the job that ends latest by comparison.

    python tests/bench/traces.py DIRECTORY [--jobs 160] [--policies flowcon,srtf] [--seeds 5]

DIRECTORY holds the traces: Pollux' workloads, Philly's run times, Alibaba's pods of 2023. A GPU of
a trace becomes a CPU here. Each runs on one host and on four, with threads that sleep and that
spin, and under srtf with lengths that logs say and without. On several hosts each job is placed
where Docker alone would have placed it, so that what differs is the order alone; `free` lets it go
to the least loaded host under each policy. `bound` is the mean over what no policy can beat.
Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from dltools.observations.outcomes import JobResult
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.mode import RealisationOptions
from dltools.sim.agenda import Reaction
from dltools.sim.lower_bound import mean_completion
from dltools.sim.simulation import Simulation
from dltools.sim.traces import alibaba_jobs, philly_jobs, pollux_jobs
from dltools.sim.workload import HostSpec, Job, Workload, workload_of

POLICIES = ("flowcon", "srtf", "las", "fair", "slaq", "tradl", "specon")
REACTION = Reaction(2.0, 0.1)


@dataclass(frozen=True)
class Case:
    """A trace on hosts of so many CPUs."""

    title: str
    workload: Workload
    is_free: bool = False


def ends(workload: Workload, policy: str) -> list[JobResult]:
    """Simulate a policy as typed."""
    found = registry.get(policy, [])
    made = Simulation(
        workload, found, build(found.parameters, {}), RealisationOptions(), reaction=REACTION
    )
    return made.run()


def placed(workload: Workload, results: list[JobResult]) -> Workload:
    """Fix each job to the host that it had."""
    nodes = {one.name: one.node for one in results}
    jobs = [replace(job, node=nodes[job.name] or "") for job in workload.jobs]
    return replace(workload, jobs=tuple(jobs))


def lines(task: tuple[Case, tuple[str, ...]]) -> list[str]:
    """Run a case under Docker alone and all policies, and say what came of it."""
    case, policies = task
    alone = ends(case.workload, "noop")
    workload = case.workload if case.is_free else placed(case.workload, alone)
    said = []
    for policy in policies:
        for length in (True, False) if policy == "srtf" else (True,):
            jobs = tuple(replace(job, length=length) for job in workload.jobs)
            found = ends(replace(workload, jobs=jobs), policy)
            mean = fmean(one.completion or 0.0 for one in found)
            before = fmean(one.completion or 0.0 for one in alone)
            span = max(one.finish or 0.0 for one in found) / max(one.finish or 0.0 for one in alone)
            latest = max(
                (one.completion or 0.0) / (other.completion or 1.0)
                for one, other in zip(found, alone, strict=True)
            )
            name = policy if length else f"{policy}, unsaid"
            said.append(
                f"{case.title:34s} {name:14s} {before:9.0f} {mean:9.0f} {mean / before:6.3f} "
                f"{mean / mean_completion(case.workload):6.2f} {span:7.3f} {latest:7.2f}"
            )
    return said


def cases(data: Path, most: int, seeds: int) -> Iterator[Case]:
    """Yield the traces on few and on many CPUs."""
    found: list[tuple[str, list[Job], float]] = []
    for path in sorted(data.glob("pollux_*.csv")):
        title = path.stem.replace("_workloads", "").replace("__workload", "")
        found.append((title, pollux_jobs(path.read_text(), path.name)[:most], 32.0))
    philly = data / "philly_runtime_seconds.csv"
    for seed in range(seeds if philly.exists() else 0):
        jobs = philly_jobs(philly.read_text(), philly.name, gap=0.0, seed=seed)[:most]
        gap = fmean(job.work for job in jobs) / 10.0  # ten CPUs' worth of work, on eight
        spread = [replace(job, arrival=k * gap) for k, job in enumerate(jobs)]
        found.append((f"philly, seed {seed}", spread, 8.0))
    pods = data / "alibaba2023_openb_pod_list_default.csv"
    if pods.exists():
        found.append(("alibaba pods", alibaba_jobs(pods.read_text(), pods.name)[:most], 32.0))
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
    """Run all cases, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--jobs", type=int, default=160)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--policies", default=",".join(POLICIES))
    options = parser.parse_args()
    policies = tuple(options.policies.split(","))
    tasks = [(case, policies) for case in cases(options.data, options.jobs, options.seeds)]
    if not tasks:
        sys.exit(f"{options.data}: no traces; see dltools-workload(5) for where they are")
    print(
        f"{'trace, hosts x CPUs':34s} {'policy':14s} {'alone, s':>9s} {'mean, s':>9s} "
        f"{'ratio':>6s} {'bound':>6s} {'makespan':>7s} {'latest':>7s}"
    )
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(lines, tasks):
            print("\n".join(said), flush=True)


if __name__ == "__main__":
    main()
