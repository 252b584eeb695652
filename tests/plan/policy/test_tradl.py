"""TRADL's two tiers, worked by hand: phases, shares, and the one delivery."""

import json

from helpers.observed_rows import at, container, decisions_of, node, planner_of, point

from dltools.actions.plans import Op
from dltools.notation.times import format_time
from dltools.observations.table import Row, to_table
from dltools.observations.targets import TargetMet
from dltools.plan.planner import Planner
from dltools.plan.policy.tradl import TRADL
from dltools.plan.realisation.options import Mode, RealisationOptions

JOBS = {"a": ("0.5", "0.2"), "b": ("0.5", "0.2"), "c": ("0.95", None)}


def labels(first: str, final: str | None) -> str:
    found = {"dltools.metric": "loss", "dltools.target": first}
    return json.dumps(found | ({"dltools.target.final": final} if final else {}))


def rows(
    losses: dict[str, list[float]],
    targets: dict[str, tuple[str, str | None]] = JOBS,
    **more: object,
) -> list[Row]:
    """Samples 10 s apart; each job uses one CPU."""
    made: list[Row] = []
    for number in range(len(next(iter(losses.values())))):
        now = 10 * number
        made.append(node(now))
        for name, values in losses.items():
            made.append(container(now, name, now, labels=labels(*targets[name]), **more))
            made.append(point(now, name, values[number]))
    return made


def shares(made: list[Row], **given: object) -> dict[str, float]:
    found = decisions_of(planner_of(made, TRADL, Mode.WEIGHT, itval=10, **given))
    return {name: round(v.allocation.share or 0, 4) for name, v in found.items()}


def test_the_job_nearest_to_its_first_target_gets_most_of_the_rest() -> None:
    # Floor 1/(n + 1) = 1/4. By its slope a needs 0.4/0.01 = 40 CPU s, b 0.3/0.02 = 15; c has met
    # its only target. Of the quarter left, a gets (1/40)/(1/40 + 1/15) = 3/11, b 8/11.
    made = rows({"a": [1.0, 0.9], "b": [1.0, 0.8], "c": [1.0, 0.9]})
    found = decisions_of(planner_of(made, TRADL, itval=10))
    assert {name: v.job_class for name, v in found.items()} == {"a": "P1", "b": "P1", "c": "P3"}
    assert shares(made) == {"a": 0.3182, "b": 0.4318, "c": 0.25}


def test_phase_2_shares_what_the_threads_of_phase_1_leave() -> None:
    # One thread on two CPUs can use half a host: a gets 1/2, b and c what is left.
    made = rows({"a": [1.0, 0.9], "b": [1.0, 0.4], "c": [1.0, 0.9]}, thread_count=1)
    assert shares(made) == {"a": 0.5, "b": 0.25, "c": 0.25}
    made = rows({"a": [1.0, 0.9], "b": [1.0, 0.4]}, thread_count=1)
    assert shares(made) == {"a": 0.5, "b": 0.5}


def test_phases_never_go_back() -> None:
    made = rows({"a": [1.0, 0.4, 0.9], "b": [1.0, 0.1, 0.9], "c": [1.0, 1.0, 1.0]})
    found = decisions_of(planner_of(made, TRADL, itval=10))
    assert {name: v.job_class for name, v in found.items()} == {"a": "P2", "b": "P3", "c": "P1"}


def test_all_past_their_targets_have_no_limits_and_the_interval_doubles() -> None:
    made = planner_of(rows({"a": [1.0, 0.1], "b": [1.0, 0.1], "c": [0.9, 0.9]}), TRADL, itval=10)
    found = decisions_of(made)
    assert {v.allocation.share for v in found.values()} == {1.0}
    assert found["a"].reason.startswith("both targets met (loss <= 0.5, then 0.2): the floor")
    assert found["c"].reason.startswith("target met (loss <= 0.95), and no other is set: the floor")
    assert made.plan({}).next_s == 20


def test_a_target_that_the_curve_cannot_reach_competes_as_phase_2() -> None:
    flat = [0.7 + 0.3 * 0.3**number for number in range(30)]
    made = rows({"a": flat, "b": [1.0 - 0.01 * t for t in range(30)]})
    found = decisions_of(planner_of(made, TRADL, itval=10))
    assert found["a"].job_class == "P2"
    assert "out of reach" in found["a"].reason
    assert found["b"].job_class == "P1"


def test_a_metric_that_never_appears_puts_no_job_first() -> None:
    made = rows({"a": [1.0, 0.98, 0.96], "b": [1.0, 0.8, 0.6]})
    misspelt = json.dumps({"dltools.metric": "nosuch", "dltools.target": "0.5"})
    for row in made:
        if row["kind"] == "container" and row["container_name"] == "b":
            row["labels"] = misspelt
    found = decisions_of(planner_of(made, TRADL, itval=10))
    assert {name: v.job_class for name, v in found.items()} == {"a": "P1", "b": "P2"}
    assert found["b"].reason.startswith("no nosuch in 20 CPU s, only loss: competes as phase 2")
    assert (found["a"].allocation.share or 0) > (found["b"].allocation.share or 0)


def test_a_metric_may_come_late() -> None:
    """As an accuracy that a job tells after its first epoch: phase 1 once it is there, and for as
    long as it may still come."""
    late = labels("0.5", None).replace("loss", "val_loss")
    made = [node(0), container(0, "a", 5, labels=late), point(0, "a", 1.0)]
    assert decisions_of(planner_of(made, TRADL))["a"].job_class == "P1"
    made += [node(10), container(10, "a", 15, labels=late), point(10, "a", 1.0)]
    assert decisions_of(planner_of(made, TRADL, itval=10))["a"].job_class == "P2"
    assert decisions_of(planner_of(made, TRADL, itval=10, explore=20))["a"].job_class == "P1"
    made += [node(20), container(20, "a", 25, labels=late), point(19, "a", 0.9, "val_loss")]
    assert decisions_of(planner_of(made, TRADL, itval=10))["a"].job_class == "P1"


def test_a_job_that_meets_its_first_target_is_delivered_once_and_at_once() -> None:
    made = Planner(TRADL, TRADL.parameters(itval=1000), RealisationOptions(Mode.WEIGHT))
    delivered, met = [], []
    table = to_table(rows({"a": [1.0, 0.9, 0.4, 0.3, 0.1, 0.1]}))
    for _ in made.add_by_sample(table):
        plan = made.plan({}, pending=False)
        deliveries = [action for action in plan.actions if action.op is Op.DELIVER]
        delivered.append([action.container_name for action in deliveries])
        met += [action.met for action in deliveries]
    assert delivered == [[], [], ["a"], [], []]
    assert met == [TargetMet("loss", "min", 0.5, 0.4, format_time(at(20)))]


def test_a_value_that_no_record_can_hold_is_delivered_without_it() -> None:
    made = planner_of(rows({"a": [1.0, float("-inf")]}), TRADL, itval=10)
    assert [one.met for one in made.plan({}).actions if one.op is Op.DELIVER] == [None]


def test_a_saved_delivery_keeps_what_was_met() -> None:
    made = planner_of(rows({"a": [1.0, 0.4]}), TRADL, itval=10)
    (before,) = (one for one in made.plan({}).actions if one.op is Op.DELIVER)
    saved = json.loads(json.dumps(made.plan({}).state))
    loaded = Planner(TRADL, TRADL.parameters(itval=10), RealisationOptions(Mode.WEIGHT), saved)
    (after,) = (one for one in loaded.plan({}).actions if one.op is Op.DELIVER)
    assert after.met == before.met is not None


def test_a_restart_begins_anew() -> None:
    made = rows({"a": [1.0, 0.4]})
    again = made[0]["time"]
    made += [
        node(20),
        container(20, "a", 0.1, labels=labels("0.5", None), started_at=made[-1]["time"]),
        point(19, "a", 1.0),
    ]
    assert again < made[-1]["time"]
    assert decisions_of(planner_of(made, TRADL))["a"].job_class == "P1"
