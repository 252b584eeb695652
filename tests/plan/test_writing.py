"""Plans and results written as JSON Lines, the same each time."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from helpers.examples import examples
from helpers.plan_records import ACTION, END, HEAD, loaded
from helpers.plan_strategies import plans, settings_
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.reading import load_plans
from dltools.plan.records import VERSION, Plan, Result, Status
from dltools.plan.writing import dump_plan, dump_result


@examples(150)
@given(plan=plans())
def test_any_plan_survives_a_round_trip(plan: Plan) -> None:
    text = dump_plan(plan)
    assert list(load_plans(text.encode().splitlines(keepends=True), "plan")) == [plan]


@examples(50)
@given(plan=plans())
def test_a_plan_is_always_the_same_text(plan: Plan) -> None:
    text = dump_plan(plan)
    assert dump_plan(plan) == text
    (back,) = load_plans(text.encode().splitlines(), "plan")
    assert dump_plan(back) == text


@examples(50)
@given(plan=plans())
def test_each_record_of_a_plan_is_a_line(plan: Plan) -> None:
    records = [json.loads(line) for line in dump_plan(plan).removesuffix("\n").split("\n")]
    assert [record["kind"] for record in records] == (
        ["plan"] + ["action"] * len(plan.actions) + ["end"]
    )
    assert records[0]["v"] == VERSION


def test_an_empty_state_is_not_written() -> None:
    (plan,) = loaded(HEAD, ACTION, {"kind": "end", "actions": 1})
    assert plan.state == {}
    assert dump_plan(plan).endswith('{"kind":"end","actions":1}\n')


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_not_written(value: float) -> None:
    plan = dataclasses.replace(loaded(HEAD, ACTION, END)[0], state={"x": value})
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_plan(plan)


def test_text_is_written_as_it_is() -> None:
    plan = dataclasses.replace(loaded(HEAD, ACTION, END)[0], policy="größer 🐋")
    assert '"größer 🐋"' in dump_plan(plan)


@examples(50)
@given(
    result=st.builds(
        Result,
        id=st.integers(),
        status=st.sampled_from(Status),
        container_id=st.text(max_size=8),
        container_name=st.text(max_size=8),
        before=settings_,
        after=settings_,
        error=st.none() | st.text(max_size=20),
    )
)
def test_a_result_is_one_line_of_json(result: Result) -> None:
    line = dump_result(result)
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert json.loads(line) == {
        "kind": "result",
        "id": result.id,
        "status": result.status.value,
        "container": {"id": result.container_id, "name": result.container_name},
        "before": result.before,
        "after": result.after,
        "error": result.error,
    }
