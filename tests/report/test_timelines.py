"""Plans and results as part of a run."""

from helpers.recorded_jobs import BEGIN, at

from dltools.actions.plans import Plan
from dltools.plan.policy import registry
from dltools.plan.policy.baselines import Noop
from dltools.plan.policy.interface import JobClass
from dltools.report.timelines import Run, Timeline, add_plans, add_results

SLEEPING = JobClass("Z", "sleeping", "it does nothing")


class Sleeper(Noop):
    """A plug-in with a class of its own."""

    name = "sleeper"
    classes = (SLEEPING,)


def run_of(*jobs: str) -> Run:
    return Run("r", begun=BEGIN.timestamp(), timelines={name: Timeline() for name in jobs})


def plan(seconds: float, policy: str = "flowcon", **classes: str) -> Plan:
    return Plan(policy, at(seconds).isoformat(), {}, {}, None, (), classes={"h": classes})


def test_each_change_of_a_class_is_noted_with_the_policys_word_for_it() -> None:
    run = run_of("a", "b")
    plans = [plan(0, a="NL"), plan(5, a="NL", b="WL"), plan(10, a="CL", gone="CL")]
    add_plans(run, plans, registry.policies([]))
    found = {
        name: [(time, one.name, one.word) for time, one in line.classes]
        for name, line in run.timelines.items()
    }
    assert found == {
        "a": [(0, "NL", "growing"), (10, "CL", "completing")],
        "b": [(5, "WL", "watching")],
    }


def test_the_classes_of_a_plug_in_are_its_own() -> None:
    run = run_of("a")
    add_plans(run, [plan(0, "sleeper", a="Z")], {"sleeper": Sleeper()})
    assert run.timelines["a"].classes == [(0, SLEEPING)]


def test_a_class_of_an_unknown_policy_has_no_word() -> None:
    run = run_of("a")
    add_plans(run, [plan(0, "gone", a="X")], {})
    assert run.timelines["a"].classes == [(0, JobClass("X", "", ""))]


def test_plans_without_a_time_say_nothing() -> None:
    run = run_of("a")
    add_plans(run, [Plan("flowcon", "", {}, {}, None, (), classes={"h": {"a": "NL"}})], {})
    assert run.timelines["a"].classes == []


def test_actions_are_counted_by_status() -> None:
    run = run_of("a")
    add_results(run, [{"status": "applied"}, {"status": "failed"}])
    add_results(run, [{"status": "applied"}])
    assert run.results == {"applied": 2, "failed": 1}
