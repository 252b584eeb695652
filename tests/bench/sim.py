"""dl-sim's speed: events a second, and how time grows with jobs and nodes.

    python tests/bench/sim.py

In process, one core, trainings that arrive so that each node has about three at a time; and, where
DLTOOLS_DATA names others' traces, a Pollux workload. Prints; nothing is asserted.
"""

import os
import time
from pathlib import Path

from cluster_traces import pollux_jobs

from dltools.observations.outcomes import summarise
from dltools.plan.policy import registry
from dltools.plan.realisation.options import RealisationOptions
from dltools.sim.generate import trainings
from dltools.sim.reaction import DELAY_S, Reaction
from dltools.sim.simulation import Simulation
from dltools.sim.workload import HostSpec, Workload, workload_of

SIZES = ((160, 16), (1_000, 100), (10_000, 1_000))


POLICIES = ("noop", "flowcon", "tradl", "las", "slaq", "srtf")


def timed(what: str, workload: Workload, name: str) -> None:
    policy = registry.get(name, [])
    simulation = Simulation(
        workload, policy, policy.parameters(), RealisationOptions(), reaction=Reaction(2.0, DELAY_S)
    )
    begun = time.perf_counter()
    found = summarise(simulation.run())
    taken = time.perf_counter() - begun
    print(
        f"  {what}  {name:8s} {taken:6.2f} s  {simulation.events / taken:8.0f} events/s"
        f"  mean completion {found.mean_completion:8.1f} s",
        flush=True,
    )


def main() -> None:
    for jobs, nodes in SIZES:
        made = trainings(jobs, "poisson", 12.0 / nodes, 0)
        workload = workload_of(made, [HostSpec(f"n{k}", 4.0) for k in range(nodes)], "bench")
        for name in POLICIES:
            timed(f"{jobs:6d} jobs, {nodes:5d} nodes", workload, name)
    folder = Path(os.environ.get("DLTOOLS_DATA", "")) / "logs/cluster"
    trace = folder / "pollux_workloads__workload-1.csv"
    if trace.is_file():
        workload = workload_of(
            pollux_jobs(trace.read_text()), [HostSpec(f"n{k}", 32.0) for k in range(2)], "pollux"
        )
        for name in POLICIES:
            timed("Pollux,  160 jobs, 64 GPUs", workload, name)


if __name__ == "__main__":
    main()
