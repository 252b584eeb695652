"""Settings that somebody else has changed: found in a loop that is closed, and nowhere else."""

from functools import cache
from typing import Any

import pytest
from helpers.closed_loop import Training, follow
from helpers.examples import repeated, some_of
from helpers.observed_rows import container, job_id, node, point, reread

from dltools.observations.table import Row, to_table
from dltools.plan.foreign_settings import Value, Watched, foreign_in_words
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.mode import Mode, RealisationOptions
from dltools.plan.records import dump_plan

CPUS = 2.0
SPINS = (0.0, 0.0, 0.0)
MODES = (None, Mode.PRIORITY, Mode.WEIGHT)


def planner(policy: str = "srtf", mode: Mode | None = Mode.PRIORITY, state: Any = None) -> Planner:
    found = registry.get(policy, [])
    made = Planner(found, build(found.parameters, {}), RealisationOptions(mode), state)
    made.watch_others()
    return made


def meddle(now: float, jobs: list[Training]) -> None:
    """Somebody sets a weight after a minute, and sets it back after two."""
    if 60 <= now < 120:
        jobs[1].weight = 700.0
    elif now == 120:
        jobs[1].weight = 1024.0


def until(rows: list[Row], seconds: float) -> list[Row]:
    begun = rows[0]["time"]
    return [row for row in rows if (row["time"] - begun).total_seconds() <= seconds]


def decided(rows: list[Row], policy: str = "srtf", mode: Mode | None = Mode.PRIORITY) -> Planner:
    made = planner(policy, mode)
    made.add(to_table(rows))
    return made


def strangers(made: Planner) -> dict[str, str]:
    """What the plan foreign_in_words of containers that somebody else has changed, by name."""
    return {
        one.name: one.reason for one in made.explain().decisions if "somebody else" in one.reason
    }


# One setting


def after(*steps: tuple[str, Value], name: str = "weight", origin: Value = 1024.0) -> Watched:
    """A setting after plans that `ask` for a value and samples that `see` one in force."""
    watched = Watched(origin, origin)
    for what, value in steps:
        watched = getattr(watched, what)(name, value, CPUS)
    return watched


FOLLOWED = (("ask", 10.0), ("see", 10.0))


@pytest.mark.parametrize(
    ("steps", "strange"),
    [
        ((*FOLLOWED, ("see", 700.0)), 1),
        ((*FOLLOWED, ("see", 700.0), ("see", 700.0)), 2),
        ((*FOLLOWED, ("see", 700.0), ("see", 800.0)), 2),
        ((*FOLLOWED, ("see", 700.0), ("see", 1024.0)), 0),
        ((*FOLLOWED, ("see", 700.0), ("see", 700.0), ("see", 10.24)), 0),
        ((*FOLLOWED, ("see", 2.0), ("see", 2.0)), 0),
        ((("ask", 10.0), ("see", 700.0), ("see", 700.0)), 0),
        ((("ask", 1024.0), ("see", 1024.0), ("see", 700.0), ("see", 700.0)), 0),
        ((*FOLLOWED, ("ask", 2.0), ("ask", 300.0), ("ask", 500.0), ("see", 10.0)), 0),
        ((*FOLLOWED, ("see", 700.0), ("ask", 700.0), ("see", 700.0)), 0),
        ((*FOLLOWED, ("ask", 2.0), ("see", 2.0), ("see", 10.0), ("see", 10.0)), 0),
        ((*FOLLOWED, ("ask", 2.0), ("ask", 5.0), ("see", 700.0), ("see", 700.0)), 0),
    ],
)
def test_a_weight_is_somebody_else_s(steps, strange) -> None:
    assert after(*steps).strange == strange


def test_what_was_in_force_before_is_nobody_s() -> None:
    assert after(*FOLLOWED, ("see", 512.0), ("see", 512.0), origin=512.0).strange == 0


@pytest.mark.parametrize(
    ("value", "is_foreign"),
    [(0.4, False), (0.401, False), (1.5, True), (None, False), (2.0, False)],
)
def test_a_quota_is_somebody_else_s(value, is_foreign) -> None:
    steps = (("ask", 0.4), ("see", 0.4), ("see", value), ("see", value))
    assert after(*steps, name="cpus", origin=None).is_foreign is is_foreign


def test_it_is_said_what_was_set() -> None:
    weight = after(*FOLLOWED, ("see", 700.0), ("see", 700.0))
    quota = after(("ask", 0.4), ("see", 0.4), ("see", 1.5), ("see", 1.5), name="cpus", origin=None)
    assert foreign_in_words({"weight": weight}) == "its weight was set to 700 by somebody else"
    assert foreign_in_words({"cpus": quota, "weight": weight}) == (
        "its weight was set to 700 and its quota was set to 1.5 CPUs by somebody else"
    )
    assert foreign_in_words({"weight": after(*FOLLOWED)}) == ""


# A loop


@pytest.mark.parametrize("policy", some_of(["srtf", "flowcon", "las"], 1))
def test_a_container_that_somebody_else_has_changed_holds_no_place(policy) -> None:
    rows = follow(planner(policy), SPINS, 140, meddle)
    before, first, second, back = (decided(until(rows, now), policy) for now in (60, 62, 64, 126))
    assert strangers(before) == strangers(first) == strangers(back) == {}
    assert strangers(second) == {"j1": "its weight was set to 700 by somebody else: left alone"}
    wanted = {one.name: one.setting or one.present for one in second.explain().decisions}
    assert wanted["j1"]["weight"] == 700
    # The two that are left have 0.85 of the weights of two beside it.
    assert sorted(wanted[name]["weight"] for name in ("j0", "j2")) == [10, 1741]
    assert job_id("j1") not in {action.container_id for action in second.plan({}).actions}


def test_who_is_changed_after_the_first_plan_is_seen_too() -> None:
    """That plan orders equals by arrival, and not by what they have had, as the round before it."""
    made, weights = planner("las"), {"a": 1024.0, "b": 1024.0, "c": 1024.0, "d": 1024.0}
    for step in range(6):
        now = float(step)
        rows = [
            container(now, name, 8.0 - number, cpu_weight=weight, thread_count=2, role="training")
            for number, (name, weight) in enumerate(weights.items())
        ]
        reports = [point(now, name, 0.5 - step / 100) for name in weights]
        made.add(to_table([node(now, CPUS), *rows, *reports]))
        made.complete()
        for action in made.plan({}, state=False).actions:
            if (name := action.container_name) != "a" or step < 2:
                weights[name] = action.set.get("weight", weights[name])
        if step == 2:
            assert weights["a"] == 10
            weights["a"] = 700.0
    assert strangers(made) == {"a": "its weight was set to 700 by somebody else: left alone"}


@pytest.mark.parametrize("mode", some_of(MODES, 2))
@pytest.mark.parametrize("policy", some_of(["srtf", "flowcon", "las", "slaq", "tradl"], 1))
def test_plans_that_are_followed_find_nobody_else(policy, mode) -> None:
    rows = follow(planner(policy, mode), SPINS, 140)
    made = planner(policy, mode)
    for _ in made.add_by_sample(to_table(rows)):
        assert strangers(made) == {}


@cache
def followed(recorded: str) -> list[Row]:
    """What is seen while the plans of a policy are followed."""
    return follow(planner(recorded), SPINS, 140)


@pytest.mark.parametrize(
    "policy", some_of(["flowcon", "srtf", "las", "slaq", "tradl", "fair", "noop"], 2)
)
@pytest.mark.parametrize("recorded", some_of(["srtf", "flowcon", "las"], 1))
def test_the_plans_of_another_pipe_are_nobody_else_s(recorded, policy) -> None:
    """A dry run of a policy beside the pipe of another one."""
    made = planner(policy)
    rows = followed(recorded)
    for _ in made.add_by_sample(to_table(rows)):
        assert strangers(made) == {}


def test_a_replay_looks_for_nobody() -> None:
    found = registry.get("srtf", [])
    made = Planner(found, build(found.parameters, {}), RealisationOptions(Mode.PRIORITY))
    made.add(to_table(until(follow(planner(), SPINS, 70, meddle), 70)))
    assert strangers(made) == {}


@pytest.mark.slow
def test_a_recording_may_be_cut_anywhere() -> None:
    rows = follow(planner(), SPINS, 70, meddle)
    for end in (64, 66, 70):
        known = until(rows, end)
        whole = dump_plan(decided(known).plan({}))
        for cut in range(len(known) - 60, len(known), repeated(3, 1)):
            first = reread(decided(known[:cut]).plan({}))
            second = planner(state=first.state)
            second.add(to_table(known[cut:]))
            assert dump_plan(second.plan({})) == whole
