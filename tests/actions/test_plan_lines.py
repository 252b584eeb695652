"""Plans and results as JSON Lines: written the same each time, and read."""

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.examples import examples
from helpers.plan_records import ACTION, END, HEAD, encoded, loaded, without
from helpers.plan_strategies import plans, settings_
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.plan_lines import VERSION, dump_close, dump_plan, dump_result, load_plans
from dltools.actions.plans import Action, Op, Plan, Result, Status
from dltools.errors import DataError


@examples(30)
@given(several=st.lists(plans(), max_size=3))
def test_a_stream_may_carry_many_plans(several) -> None:
    data = "".join(map(dump_plan, several)).encode().splitlines()
    if several:
        assert list(load_plans(data, "plans")) == several


def in_turns(*groups: int, **head: Any) -> Plan:
    """A live plan that gives a container to each group, beside one that gets a quota."""
    turns = [
        {**ACTION, "id": 2 + place, "op": "rotate", "expect": {}}
        | {"container": {"id": f"{place}" * 64, "name": f"job-{place}"}}
        | {"set": {"group": group, "turn_s": 8.0}}
        for place, group in enumerate(groups)
    ]
    given = {**HEAD, "live": True, "classes": {"node-1": {"job-3": "NL"}}, "covers": ["3"], **head}
    (plan,) = loaded(given, ACTION, *turns, {"kind": "end", "actions": 1 + len(turns)})
    return plan


def test_a_live_plan_says_what_is_other_than_in_the_plan_before() -> None:
    first, second = in_turns(0, 1), in_turns(0, 1, at="2026-01-31T12:00:02.000000Z")
    other_turns = in_turns(1, 0, classes={})
    texts = [dump_plan(first), dump_plan(second, first), dump_plan(other_turns, second)]
    heads = [json.loads(text.splitlines()[0]) for text in texts]
    left_out = [set(heads[0]) - set(head) for head in heads[1:]]
    assert left_out == [{"params", "classes", "covers"}, {"params", "covers"}]
    assert [head.get("same_turns") for head in heads] == [None, True, None]
    assert [text.count('"op":"rotate"') for text in texts] == [2, 0, 2]
    lines = "".join(texts).encode().splitlines()
    assert list(load_plans(lines, "plans")) == [first, second, other_turns]


def test_what_is_left_out_is_unknown_where_the_plan_before_is_missing() -> None:
    text = dump_plan(in_turns(0, 1), in_turns(0, 1))
    (plan,) = load_plans(text.encode().splitlines(), "plans")
    assert (plan.params, plan.classes) == ({}, {})
    assert [action.op for action in plan.actions] == [Op.UPDATE]


def test_nothing_is_as_in_a_stream_that_was_closed() -> None:
    lines = [dump_plan(in_turns(0, 1)), dump_close(), dump_plan(in_turns(0, 1), in_turns(0, 1))]
    _, plan = load_plans("".join(lines).encode().splitlines(), "plans")
    assert (plan.params, len(plan.actions)) == ({}, 1)


def test_a_turn_that_somebody_takes_out_of_a_stream_stays_out() -> None:
    first, second = dump_plan(in_turns(0, 1)), dump_plan(in_turns(0, 1), in_turns(0, 1))
    edited = [line for line in first.encode().splitlines() if b"job-1" not in line]
    with_warnings: list[str] = []
    *_, last = load_plans([*edited, *second.encode().splitlines()], "plans", with_warnings.append)
    assert [action.container_name for action in last.actions] == ["job-3", "job-0"]


def test_each_plan_is_yielded_when_its_end_arrives() -> None:
    sent: list[str] = []

    def arriving() -> Iterator[bytes]:
        for line in encoded(HEAD, ACTION, END, HEAD, {**END, "actions": 0}):
            sent.append(json.loads(line)["kind"])
            yield line

    incoming = load_plans(arriving(), "plans")
    assert len(next(incoming).actions) == 1
    assert sent == ["plan", "action", "end"]
    assert len(next(incoming).actions) == 0
    assert list(incoming) == []


def test_plans_before_a_broken_one_are_yielded() -> None:
    incoming = load_plans([*encoded(HEAD, ACTION, END), b"nonsense\n"], "plans")
    assert next(incoming).policy == "flowcon"
    with pytest.raises(DataError, match=r"^plans: line 4: "):
        next(incoming)


def test_a_plan_is_read_field_by_field() -> None:
    assert loaded(HEAD, ACTION, END) == [
        Plan(
            policy="flowcon",
            at="2026-01-31T12:00:00.000000Z",
            params={"alpha": 0.03},
            input={"rows": 120},
            next_s=20.0,
            actions=(
                Action(
                    id=1,
                    op=Op.UPDATE,
                    host="node-1",
                    container_id="c" * 64,
                    container_name="job-3",
                    set={"cpus": 1.5},
                    expect={"cpus": 2.0},
                    reason="growth efficiency 0.012 < alpha 0.03 twice",
                ),
            ),
            state={"containers": {}},
        )
    ]


@pytest.mark.parametrize("op", Op)
def test_every_op_is_read(op) -> None:
    own = {"set": {"group": 1, "turn_s": 2.0}} if op is Op.ROTATE else {}
    (plan,) = loaded(HEAD, {**ACTION, "op": op.value, **own}, END)
    assert plan.actions[0].op is op


def test_a_turn_may_name_the_queue_of_a_gpu() -> None:
    turn = {"group": 1, "turn_s": 2.0}
    for queue, expected in (("GPU-1", turn | {"queue": "GPU-1"}), (None, turn), ("", turn)):
        action = {**ACTION, "op": "rotate", "set": turn | {"queue": queue}}
        (plan,) = loaded(HEAD, action, END)
        assert plan.actions[0].set == expected


def test_blank_lines_and_line_endings_do_not_matter() -> None:
    head, action, end = encoded(HEAD, ACTION, END)
    lines = [b"\n", head.replace(b"\n", b"\r\n"), b"  \n", action, end.strip()]
    assert list(load_plans(lines, "plan")) == loaded(HEAD, ACTION, END)


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("record", [{"kind": "note", "text": "x"}, {"kind": None}, {}])
def test_unknown_kinds_of_record_are_ignored(place, record) -> None:
    records = [HEAD, ACTION, END]
    records.insert(place, record)
    assert loaded(*records) == loaded(HEAD, ACTION, END)


def test_unknown_fields_are_ignored() -> None:
    later = [{**record, "later": [1]} for record in (HEAD, ACTION, END)]
    assert loaded(*later) == loaded(HEAD, ACTION, END)


@pytest.mark.parametrize("name", ["cpus", "cpuset", "memory"])
def test_null_removes_a_limit(name) -> None:
    (plan,) = loaded(HEAD, {**ACTION, "set": {name: None}}, END)
    assert plan.actions[0].set == {name: None}


def test_ids_may_come_again_in_the_next_plan() -> None:
    assert len(loaded(HEAD, ACTION, END, HEAD, ACTION, END)) == 2


def edited(*records: Any) -> tuple[list[int], list[str]]:
    """The ids of a plan's actions, and what is said of it."""
    warnings: list[str] = []
    (plan,) = load_plans(encoded(*records), "plan", warnings.append)
    return [action.id for action in plan.actions], warnings


@pytest.mark.parametrize("actions", [0, 2, -1])
def test_a_wrong_count_of_actions_gives_a_warning(actions) -> None:
    assert edited(HEAD, ACTION, {**END, "actions": actions}) == (
        [1],
        [f"plan: line 3: {actions} actions announced, 1 found: treated as edited by hand"],
    )


def test_all_actions_may_be_deleted() -> None:
    ids, warnings = edited(HEAD, END)
    assert (ids, len(warnings)) == ([], 1)


def test_the_right_count_gives_no_warning_and_an_action_may_lack_its_id() -> None:
    for action in (ACTION, without(ACTION, "id")):
        assert edited(HEAD, action, END) == ([1], [])


@pytest.mark.parametrize(
    ("given", "numbered"),
    [
        ([2, 3], [2, 3]),
        ([5, 1], [5, 1]),
        ([None, 1, None], [2, 1, 3]),
        ([1, 1, 3, 1], [1, 4, 3, 5]),
        ([-2, -2], [-2, -1]),
        ([None], [1]),
    ],
)
def test_actions_without_an_id_or_with_a_used_id_get_a_new_one(given, numbered) -> None:
    actions = [{**ACTION, "id": number} for number in given]
    ids, warnings = edited(HEAD, *actions, {**END, "actions": len(given)})
    assert ids == numbered
    numbers = [number for number in given if number is not None]
    twice = ["two actions have the same id: the later one gets another"]
    said = [line.partition(": line ")[2].partition(": ")[2] for line in warnings]
    assert said == (twice if len(set(numbers)) < len(numbers) else [])


@pytest.mark.parametrize("key", ["policy", "at"])
def test_a_null_text_is_empty_and_not_the_word_none(key) -> None:
    (plan,) = loaded({**HEAD, key: None}, ACTION, END)
    assert getattr(plan, key) == ""


@examples(150)
@given(plan=plans())
def test_any_plan_is_a_line_for_each_record_and_survives_a_round_trip(plan) -> None:
    text = dump_plan(plan)
    assert text == dump_plan(plan)  # always the same
    records = [json.loads(line) for line in text.removesuffix("\n").split("\n")]
    kinds = [record["kind"] for record in records]
    assert kinds == ["plan"] + ["action"] * len(plan.actions) + ["end"]
    assert records[0]["v"] == VERSION
    (back,) = load_plans(text.encode().splitlines(keepends=True), "plan")
    assert (back, dump_plan(back)) == (plan, text)


def test_an_empty_state_is_not_written() -> None:
    (plan,) = loaded(HEAD, ACTION, {"kind": "end", "actions": 1})
    assert plan.state == {}
    assert dump_plan(plan).endswith('{"kind":"end","actions":1}\n')


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_not_written(value) -> None:
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
def test_a_result_is_one_line_of_json(result) -> None:
    line = dump_result(result)
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert json.loads(line) == {
        "kind": "result",
        "id": result.id,
        "status": result.status.value,
        "container": {"id": result.container_id, "name": result.container_name},
        "before": named(result.before),
        "after": named(result.after),
        "error": result.error,
    }


def named(settings) -> dict[str, object]:
    """Settings by the names that plans and results have for them."""
    return {"cpu_weight" if key == "weight" else key: value for key, value in settings.items()}
