"""Single simulations, and how many of them run on all cores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dltools.cli.policies import (
    allowed_plugins,
    assign,
    parse_assignments,
    realisation_options,
    warn_of_broken_plugins,
    warn_of_unused_quantum,
)
from dltools.cli.remarks import tracked
from dltools.errors import ConfigError
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build, names
from dltools.plan.realisation.options import QueueParameters, RealisationOptions
from dltools.sim.reaction import DELAY_S, Reaction
from dltools.sim.simulation import Observer, Simulation

if TYPE_CHECKING:
    from dltools.observations.outcomes import JobResult
    from dltools.plan.policy.interface import Policy
    from dltools.sim.workload import Workload

_FEW_JOBS = 500
"""Up to so many jobs, starting processes takes longer than it saves."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One simulation: a workload under a policy with its settings, sampled every `interval_s`."""

    workload: Workload
    policy: str
    assignments: tuple[str, ...]
    mode: str
    is_clairvoyant: bool
    interval_s: float
    quantum_s: float | None = None

    def simulation(self, observer: Observer | None = None) -> Simulation:
        """Return the simulation."""
        policy, *settings = _settings(self.policy, self.assignments, self.mode, self.quantum_s)
        return Simulation(
            self.workload,
            policy,
            *settings,
            clairvoyant=self.is_clairvoyant,
            observer=observer,
            reaction=Reaction(self.interval_s, DELAY_S),
        )


def check_settings(
    policies: Sequence[str], assignments: Sequence[str], mode: str, quantum_s: float | None
) -> None:
    """Raise `ConfigError` for an unknown policy, parameter or mode, and for a quantum out of range,
    before anything runs."""
    warn_of_broken_plugins()
    warn_of_unused_quantum(mode, quantum_s)
    parameters: set[str] = set()
    for name in policies:
        policy, *_ = _settings(name, assignments, mode, quantum_s)
        parameters |= names(policy.parameters) | names(QueueParameters)
    for key in parse_assignments(assignments):
        if key not in parameters:
            raise ConfigError(f"--set {key}: none of these policies has this parameter")


def run_all(trials: Sequence[Trial]) -> list[list[JobResult]]:
    """Return the results of trials, in their order; many trials run on all cores."""
    cores = len(os.sched_getaffinity(0))
    if cores == 1 or sum(len(trial.workload.jobs) for trial in trials) < _FEW_JOBS:
        return list(tracked("simulating", map(_run, trials), len(trials)))
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(min(cores, len(trials))) as pool:
        return list(tracked("simulating", pool.map(_run, trials), len(trials)))


def _run(trial: Trial) -> list[JobResult]:
    return trial.simulation().run()


def _settings(
    name: str, assignments: Sequence[str], mode: str, quantum_s: float | None
) -> tuple[Policy, Any, RealisationOptions]:
    """Return a policy, its parameters, and how its allocations become settings; assignments of
    other policies' parameters are left out. Raises `ConfigError`."""
    policy = registry.get(name, allowed_plugins())
    own = names(policy.parameters)
    of_policy, of_queue = assign(policy, parse_assignments(assignments))
    given = {key: value for key, value in of_policy.items() if key in own}
    return policy, build(policy.parameters, given), realisation_options(mode, quantum_s, of_queue)
