"""The default mode follows from what jobs lose by competing, not from their threads alone."""

from typing import Any

import pytest
from helpers.examples import some_of
from helpers.simulations import simulation

from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.hosts.rounds import Rounds
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.shared_host import Realisation
from dltools.sim.workload import HostSpec, Job, workload_of

Choices = list[tuple[float, Mode, str]]


def run(
    policy: str, spin: float, monkeypatch: pytest.MonkeyPatch, mode: Mode | None = None
) -> tuple[float, Choices]:
    """Return the makespan (s) of three jobs of two threads, and each change of mode: when, why."""
    choices: Choices = []
    run_round = Rounds.run

    def noted(self: Rounds, host: HostHistory, *others: Any, **given: bool) -> Realisation | None:
        found = run_round(self, host, *others, **given)
        is_of_all = len(host.jobs()) == 3
        if found and is_of_all and (not choices or choices[-1][1:] != (found.mode, found.why)):
            choices.append(((host.sampled_at or 0) / 1e6, found.mode, found.why))
        return found

    monkeypatch.setattr(Rounds, "run", noted)
    jobs = tuple(
        Job(f"j{number}", 10.0 * number, work=400.0, threads=2, epochs=400, spin=spin)
        for number in range(3)
    )
    results = simulation(workload_of(jobs, (HostSpec("node", 2.0),), "test"), policy, mode).run()
    monkeypatch.undo()
    return max(result.finish or 0.0 for result in results), choices


@pytest.mark.parametrize("policy", some_of(["flowcon", "srtf", "fair", "las"], 2))
def test_threads_that_sleep_lose_nothing_and_threads_that_spin_take_turns(
    policy, monkeypatch
) -> None:
    makespan, _ = run(policy, 0.0, monkeypatch)
    assert makespan <= 1.01 * run("noop", 0.0, monkeypatch)[0]
    makespan, spinning = run(policy, 1.0, monkeypatch)
    assert {mode for _, mode, _ in spinning} == {Mode.PRIORITY}
    assert makespan <= 1.01 * run(policy, 1.0, monkeypatch, Mode.PRIORITY)[0]
