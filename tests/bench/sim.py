"""dl-sim's speed: events a second, and how time grows with jobs and nodes.

    python tests/bench/sim.py

In process, one core, trainings that arrive so that each node has about three at a time. Prints;
nothing is asserted.
"""

from __future__ import annotations

import time

from dltools.outcome import summarise
from dltools.policy import registry
from dltools.realize import Choice
from dltools.sim.engine import Simulation
from dltools.sim.generate import trainings
from dltools.sim.workload import NodeSpec, checked

SIZES = ((160, 16), (1_000, 100), (10_000, 1_000))


def main() -> None:
    for jobs, nodes in SIZES:
        made = trainings(jobs, "poisson", 12.0 / nodes, 0)
        workload = checked(made, [NodeSpec(f"n{k}", 4.0) for k in range(nodes)], "bench")
        for name in ("noop", "flowcon", "tradl", "las", "slaq", "srtf"):
            policy = registry.get(name, [])
            simulation = Simulation(workload, policy, policy.parameters(), Choice())
            begun = time.perf_counter()
            found = summarise(simulation.run())
            taken = time.perf_counter() - begun
            print(f"  {jobs:6d} jobs, {nodes:5d} nodes  {name:8s} {taken:6.2f} s"
                  f"  {simulation.events / taken:8.0f} events/s"
                  f"  mean completion {found.mean_completion:6.1f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
