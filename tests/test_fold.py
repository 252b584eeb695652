"""Properties of the fold from observations to plans."""

from __future__ import annotations

import dataclasses
import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observing import BEGUN, container, job_id, node, point, reread

from dltools.planner import Fold
from dltools.plans import Plan, dump_plan
from dltools.policy import registry
from dltools.policy.flowcon import FLOWCON, Parameters
from dltools.realize import Mode
from dltools.schema import COLUMNS, Kind, Type
from dltools.streams import Row, to_table

POLICIES = sorted(registry.policies([]))


@st.composite
def recordings(draw: st.DrawFn) -> list[Row]:
    """Up to 12 samples of up to 4 jobs that come, go, restart, and report whatever they like."""
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True))
    rows: list[Row] = []
    for number in range(draw(st.integers(1, 12))):
        now = number * 2.0 + draw(st.sampled_from([0.0, 0.0, 0.05]))
        rows.append(node(now, draw(st.sampled_from([1.0, 2.0, 4.0]))))
        for name in names:
            if draw(st.integers(0, 9)) == 0:
                continue
            limit = draw(st.sampled_from([None, 0.5, 2.0]))
            rows.append(container(now, name, number * 1.5, cpu_limit_cores=limit))
            for _ in range(draw(st.integers(0, 2))):
                value = draw(st.floats(width=32))
                offset = draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
                rows.append(point(max(0.0, now - offset), name, value))
    return sorted(rows, key=lambda row: row["time"])


def flowcon(state: object = None) -> Fold:
    return Fold(FLOWCON, Parameters(itval=4.0), Mode.QUOTA, state)  # type: ignore[arg-type]


def final(rows: list[Row], state: object = None) -> Plan:
    made = flowcon(state)
    made.add(to_table(rows))
    return made.plan({})


def essence(plan: Plan) -> list[tuple[object, ...]]:
    return [(a.container_name, a.set, a.expect) for a in plan.actions]


@settings(max_examples=150, deadline=None)
@given(recordings(), st.data())
def test_two_halves_with_the_state_handed_on_give_the_plan_of_one_fold(
    rows: list[Row], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    first = reread(final(rows[:cut]))
    assert dump_plan(final(rows[cut:], first.state)) == dump_plan(final(rows))


@settings(max_examples=30, deadline=None)
@given(recordings())
def test_same_input_gives_same_bytes_and_seeing_it_again_changes_nothing(rows: list[Row]) -> None:
    once = final(rows)
    assert dump_plan(final(rows)) == dump_plan(once)


@settings(max_examples=30, deadline=None)
@given(recordings(), st.randoms(use_true_random=False))
def test_order_of_containers_within_a_sample_changes_nothing(
    rows: list[Row], chance: random.Random
) -> None:
    shuffled = sorted(rows, key=lambda row: (row["time"], chance.random()))
    assert essence(final(shuffled)) == essence(final(rows))


@settings(max_examples=30, deadline=None)
@given(recordings(), st.integers(-(10**9), 10**9))
def test_a_shift_of_all_times_changes_no_action(rows: list[Row], seconds: int) -> None:
    by = timedelta(seconds=seconds, microseconds=seconds % 997)
    shifted = [
        row | {"time": row["time"] + by}
        | ({"started_at": row["started_at"] + by} if "started_at" in row else {})
        for row in rows
    ]  # fmt: skip
    assert essence(final(shifted)) == essence(final(rows))


@settings(max_examples=30, deadline=None)
@given(recordings())
def test_an_idle_container_without_progress_changes_nothing(rows: list[Row]) -> None:
    idle = [container((row["time"] - BEGUN).total_seconds(), "idle", 0.0)
            for row in rows if row["kind"] == "node"]  # fmt: skip
    assert essence(final(rows + idle)) == essence(final(rows))


@settings(max_examples=30, deadline=None)
@given(recordings(), st.sampled_from([2.0**-8, 0.5, 4.0, 2.0**10]))
def test_scaling_every_metric_changes_nothing(rows: list[Row], factor: float) -> None:
    scaled = [row | ({"value": row["value"] * factor} if "value" in row else {}) for row in rows]
    finite = all(abs(row.get("value") or 0) < 1e300 for row in scaled)
    assert not finite or essence(final(scaled)) == essence(final(rows))


def any_value(type_: Type) -> st.SearchStrategy[object]:
    return {
        Type.TIME: st.datetimes().map(lambda moment: moment.replace(tzinfo=BEGUN.tzinfo)),
        Type.NAME: st.sampled_from(["", "a", "b", "{}", "[", "running", "loss", "val_accuracy"])
        | st.text(st.characters(codec="utf-8"), max_size=5),
        Type.INT: st.integers(-(2**63), 2**63 - 1),
        Type.FLOAT: st.floats(),
    }[type_]


ANY_ROW = st.fixed_dictionaries(
    {
        "time": st.integers(0, 50).map(lambda s: BEGUN + timedelta(seconds=s))
        | any_value(Type.TIME),
        "host": st.sampled_from(["h", "i"]),
        "kind": st.sampled_from([kind.value for kind in Kind]),
    },
    optional={
        c.name: st.none() | any_value(c.type)
        for c in COLUMNS
        if c.name not in ("time", "host", "kind")
    }
    | {"container_id": st.sampled_from(["a", "b", job_id("c")])},
)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("mode", list(Mode))
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ANY_ROW, max_size=30))
def test_no_table_makes_a_policy_raise(name: str, mode: Mode, rows: list[Row]) -> None:
    policy = registry.get(name, [])
    made = Fold(policy, policy.parameters(), mode)
    made.add(to_table(rows))
    plan = made.plan({})
    made.explain()
    again = Fold(policy, policy.parameters(), mode, reread(plan).state)
    assert dump_plan(again.plan({})) == dump_plan(dataclasses.replace(plan, input={}))
    for action in plan.actions:
        cpus = action.set.get("cpus", 1.0)
        assert cpus is None or cpus >= 0.01
        assert 2 <= action.set.get("cpu_weight", 2) <= 262144


def test_an_overlapping_recording_is_not_counted_twice() -> None:
    rows: list[Row] = []
    for k in range(6):
        now = 2.0 * k
        rows += [node(now), container(now, "a", k), point(now, "a", 1 / (k + 1))]
    first = final(rows)
    assert essence(final(rows[6:], reread(first).state)) == essence(first)


def test_protected_jobs_get_no_action() -> None:
    labels = '{"dltools.protect": "1"}'
    rows = [node(0), container(0, "a", 1.0, labels=labels), point(0, "a", 1.0)]
    made = Fold(registry.get("fair", []), registry.get("fair", []).parameters(), Mode.QUOTA)
    made.add(to_table([*rows, container(0, "b", 1.0), point(0, "b", 1.0)]))
    assert essence(made.plan({})) == []  # b alone has the whole node


def test_a_stream_of_whole_samples_ends_as_the_recording_does() -> None:
    samples = [
        [node(2.0 * k), container(2.0 * k, "a", k), container(2.0 * k, "b", k),
         point(2.0 * k - 0.5, "a", 1 / (k + 1)), point(2.0 * k - 0.5, "b", 1.0)]
        for k in range(12)
    ]  # fmt: skip
    stream = flowcon()
    for sample in samples:
        stream.add(to_table(sample))
        stream.settle()
    assert essence(stream.plan({})) == essence(final([row for s in samples for row in s]))
