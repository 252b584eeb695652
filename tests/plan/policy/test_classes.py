"""Each policy names the classes that it puts jobs into."""

from pathlib import Path
from typing import Any

import pytest

from dltools.plan.policy.interface import Cluster, Decision, State, classes_of
from dltools.plan.policy.registry import policies
from dltools.plan.realisation.options import RealisationOptions
from dltools.sim.simulation import Simulation
from dltools.sim.workload_file import read_workload

OWN = policies(())
WORKLOADS = Path(__file__).parents[3] / "samples" / "papers"


class Spy:
    """A policy that notes the classes of its decisions."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.seen: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        decision: Decision = self._policy.decide(cluster, parameters, state)
        self.seen |= {one.job_class for one in decision.allocations.values()}
        return decision


@pytest.mark.parametrize("name", OWN)
def test_a_policy_names_each_class_once(name) -> None:
    classes = classes_of(OWN[name])
    names = [one.name for one in classes]
    assert len(set(names)) == len(names)
    assert all(one.word and one.meaning for one in classes)


@pytest.mark.parametrize(
    ("name", "workload", "least"),
    [
        ("flowcon", "flowcon-fixed", {"NL", "WL", "CL"}),
        ("tradl", "tradl-5", {"P1", "P2", "P3"}),
        ("dqoes", "dqoes-varied-fixed", {"G", "S", "B"}),
        ("specon", "specon-7", {"PC", "WC"}),
        ("las", "flowcon-fixed", {"Q1", "Q2"}),
        ("srtf", "flowcon-fixed", {"new", "known"}),
        ("slaq", "flowcon-fixed", {"-"}),
        ("fair", "flowcon-fixed", {"-"}),
    ],
)
def test_every_class_that_a_policy_decides_is_one_that_it_names(name, workload, least) -> None:
    spy = Spy(OWN[name])
    text = (WORKLOADS / f"{workload}.toml").read_text()
    text = text.replace("[[job]]", "[[job]]\nlength = false")
    Simulation(read_workload(text, workload), spy, spy.parameters(), RealisationOptions()).run()
    assert least <= spy.seen
    assert spy.seen - {"-"} <= {one.name for one in classes_of(spy)}
