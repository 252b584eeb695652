"""Simulations of workloads under policies, which tests name."""

from typing import Any

from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build, describe
from dltools.plan.realisation.options import Mode, RealisationOptions
from dltools.sim.simulation import Simulation
from dltools.sim.workload import Workload


def simulation(
    workload: Workload,
    policy: str = "noop",
    mode: Mode | None = None,
    given: dict[str, Any] | None = None,
    **more: Any,
) -> Simulation:
    """Return a simulation with those given parameters that a policy has; `more` are its own."""
    found = registry.get(policy, [])
    known = {one["name"] for one in describe(found.parameters)}
    own = {name: value for name, value in (given or {}).items() if name in known}
    return Simulation(
        workload, found, build(found.parameters, own), RealisationOptions(mode), **more
    )
