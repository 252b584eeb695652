"""Plans and results as JSON Lines: written the same each time, read whole or refused."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.strategies import plans, settings_
from hypothesis import given, settings
from hypothesis import strategies as st

from dltools.errors import DataError
from dltools.plan.reading import load_plans
from dltools.plan.realisation.settings import SETTINGS, differs
from dltools.plan.records import VERSION, Action, Op, Plan, Result, Status
from dltools.plan.writing import dump_plan, dump_result

HEAD: dict[str, Any] = {
    "kind": "plan",
    "v": 1,
    "policy": "flowcon",
    "at": "2026-01-31T12:00:00.000000Z",
    "params": {"alpha": 0.03},
    "input": {"rows": 120},
    "next_s": 20.0,
}
ACTION: dict[str, Any] = {
    "kind": "action",
    "id": 1,
    "op": "update",
    "host": "node-1",
    "container": {"id": "c" * 64, "name": "job-3"},
    "set": {"cpus": 1.5},
    "expect": {"cpus": 2.0},
    "reason": "growth efficiency 0.012 < alpha 0.03 twice",
}
END: dict[str, Any] = {"kind": "end", "actions": 1, "state": {"containers": {}}}


def _lines(*records: Any) -> list[bytes]:
    return [json.dumps(record).encode() + b"\n" for record in records]


def _load(*records: Any) -> list[Plan]:
    return list(load_plans(_lines(*records), "plan"))


def _without(record: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}


@settings(max_examples=150)
@given(plan=plans())
def test_any_plan_survives_a_round_trip(plan: Plan) -> None:
    text = dump_plan(plan)
    assert list(load_plans(text.encode().splitlines(keepends=True), "plan")) == [plan]


@settings(max_examples=50)
@given(plan=plans())
def test_a_plan_is_always_the_same_text(plan: Plan) -> None:
    text = dump_plan(plan)
    assert dump_plan(plan) == text
    (back,) = load_plans(text.encode().splitlines(), "plan")
    assert dump_plan(back) == text


@settings(max_examples=50)
@given(plan=plans())
def test_a_plan_is_a_record_a_line(plan: Plan) -> None:
    records = [json.loads(line) for line in dump_plan(plan).removesuffix("\n").split("\n")]
    assert [record["kind"] for record in records] == (
        ["plan"] + ["action"] * len(plan.actions) + ["end"]
    )
    assert records[0]["v"] == VERSION


@settings(max_examples=30)
@given(several=st.lists(plans(), max_size=3))
def test_a_stream_may_carry_many_plans(several: list[Plan]) -> None:
    data = "".join(map(dump_plan, several)).encode().splitlines()
    if several:
        assert list(load_plans(data, "plans")) == several


def test_each_plan_is_given_when_its_end_arrives() -> None:
    sent: list[str] = []

    def arriving() -> Iterator[bytes]:
        for line in _lines(HEAD, ACTION, END, HEAD, {**END, "actions": 0}):
            sent.append(json.loads(line)["kind"])
            yield line

    incoming = load_plans(arriving(), "plans")
    assert len(next(incoming).actions) == 1
    assert sent == ["plan", "action", "end"]
    assert len(next(incoming).actions) == 0
    assert list(incoming) == []


def test_plans_before_a_broken_one_are_given() -> None:
    incoming = load_plans([*_lines(HEAD, ACTION, END), b"nonsense\n"], "plans")
    assert next(incoming).policy == "flowcon"
    with pytest.raises(DataError, match=r"^plans: line 4: "):
        next(incoming)


def test_a_plan_is_read_field_by_field() -> None:
    assert _load(HEAD, ACTION, END) == [
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
def test_every_op_is_read(op: Op) -> None:
    own = {"set": {"group": 1, "turn_s": 2.0}} if op is Op.ROTATE else {}
    (plan,) = _load(HEAD, {**ACTION, "op": op.value, **own}, END)
    assert plan.actions[0].op is op


def test_blank_lines_and_line_endings_do_not_matter() -> None:
    head, action, end = _lines(HEAD, ACTION, END)
    lines = [b"\n", head.replace(b"\n", b"\r\n"), b"  \n", action, end.strip()]
    assert list(load_plans(lines, "plan")) == _load(HEAD, ACTION, END)


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("record", [{"kind": "note", "text": "x"}, {"kind": None}, {}])
def test_unknown_kinds_of_record_are_ignored(place: int, record: dict[str, Any]) -> None:
    records = [HEAD, ACTION, END]
    records.insert(place, record)
    assert _load(*records) == _load(HEAD, ACTION, END)


def test_unknown_fields_are_ignored() -> None:
    later = [{**record, "later": [1]} for record in (HEAD, ACTION, END)]
    assert _load(*later) == _load(HEAD, ACTION, END)


WRONG: dict[str, list[Any]] = {
    "text": [None, 1, 1.5, True, [], {}],
    "integer": [None, "1", 1.5, True, [], {}],
    "object": [1, 1.5, "x", True, [1], math.nan],
    "objects that must be there": [None, 1, "x", True, [], {}],
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[(key, value) for key in ("op", "host") for value in WRONG["text"]],
        *[("id", value) for value in WRONG["integer"] if value is not None],
        *[("container", value) for value in WRONG["objects that must be there"]],
        ("container", {"id": "c"}),
        ("container", {"name": "n"}),
        ("container", {"id": 1, "name": "n"}),
        ("container", {"id": "c", "name": None}),
        ("op", "destroy"),
        ("op", "UPDATE"),
        *[(key, value) for key in ("set", "expect") for value in WRONG["object"]],
        ("set", []),
        ("set", False),
        ("set", ""),
    ],
)
def test_a_malformed_action_is_refused_by_its_line(key: str, value: Any) -> None:
    with pytest.raises(DataError, match=r"^plan: line 2: "):
        _load(HEAD, {**ACTION, key: value}, END)


@pytest.mark.parametrize("key", ["op", "host", "container"])
def test_an_action_that_lacks_a_field_is_refused_by_its_line(key: str) -> None:
    with pytest.raises(DataError, match=f"^plan: line 2: missing or wrong '{key}'$"):
        _load(HEAD, _without(ACTION, key), END)


@pytest.mark.parametrize("key", ["set", "expect"])
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gpu": 1}, "unknown setting 'gpu'; known: cpus, cpu_weight, cpuset, memory"),
        ({"": 1}, "unknown setting ''"),
        ({"cpus": 0}, "cpus is not a positive number: 0"),
        ({"cpus": -1.5}, "cpus is not a positive number: -1.5"),
        ({"cpus": "2"}, "cpus is not a positive number: '2'"),
        ({"cpus": True}, "cpus is not a positive number: True"),
        ({"cpus": [1]}, "cpus is not a positive number"),
        ({"cpus": math.nan}, "nan"),
        ({"cpus": math.inf}, "inf"),
        pytest.param({"cpus": 10**400}, "cpus is not a positive number", id="400 digits"),
        ({"memory": -1}, "memory is not a positive number"),
        ({"memory": 0}, "memory is not a positive number"),
        ({"memory": "1g"}, "memory is not a positive number"),
        ({"cpu_weight": None}, "cpu_weight is not a positive number: None"),
        ({"cpu_weight": 0}, "cpu_weight is not a positive number"),
        ({"cpuset": ""}, "cpuset is not a list of CPUs: ''"),
        ({"cpuset": 3}, "cpuset is not a list of CPUs: 3"),
        ({"cpuset": [0, 1]}, "cpuset is not a list of CPUs"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_by_its_line(
    key: str, setting: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=r"^plan: line 2: ") as refused:
        _load(HEAD, {**ACTION, key: setting}, END)
    assert message.lower() in str(refused.value).lower()


@pytest.mark.parametrize("name", ["cpus", "cpuset", "memory"])
def test_null_lifts_a_limit(name: str) -> None:
    (plan,) = _load(HEAD, {**ACTION, "set": {name: None}}, END)
    assert plan.actions[0].set == {name: None}


@pytest.mark.parametrize("version", [None, 0, 2, 1.5, "1", [], {}])
def test_another_version_is_refused_and_both_are_named(version: Any) -> None:
    with pytest.raises(DataError, match=f"^plan: line 1: plan version .* reads {VERSION}$"):
        _load({**HEAD, "v": version}, ACTION, END)


@pytest.mark.parametrize(
    "version",
    ["2\n0", "\x1b[2J", "9" * 10_000, ["\n"]],
    ids=["newline", "escape", "long", "list"],
)
def test_a_hostile_version_is_named_in_one_short_printable_line(version: Any) -> None:
    with pytest.raises(DataError, match=r"^plan: line 1: plan version") as refused:
        _load({**HEAD, "v": version}, ACTION, END)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_a_version_is_required() -> None:
    with pytest.raises(DataError, match=r"^plan: line 1: plan version .?None"):
        _load(_without(HEAD, "v"), ACTION, END)


@pytest.mark.parametrize("key", ["params", "input"])
@pytest.mark.parametrize("value", WRONG["object"])
def test_a_malformed_head_is_refused(key: str, value: Any) -> None:
    with pytest.raises(DataError, match=r"^plan: line [13]: "):
        _load({**HEAD, key: value}, ACTION, END)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, pytest.param(10**400, id="400 digits"), "20", True, [], {}]
)
def test_a_next_time_that_is_no_number_of_seconds_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match=r"^plan: line [13]: "):
        _load({**HEAD, "next_s": value}, ACTION, END)


@pytest.mark.parametrize("value", WRONG["object"])
def test_a_malformed_state_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match=r"^plan: line 3: "):
        _load(HEAD, ACTION, {**END, "state": value})


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("line", [1, 2, 3])
def test_numbers_that_json_does_not_have_are_refused_by_their_line(word: str, line: int) -> None:
    records = [{**HEAD, "params": "?"}, {**ACTION, "set": "?"}, {**END, "state": "?"}]
    lines = _lines(HEAD, ACTION, END)
    lines[line - 1] = _lines(*records)[line - 1].replace(b'"?"', b'{"cpus":%s}' % word.encode())
    with pytest.raises(DataError, match=f"^plan: line {line}: "):
        list(load_plans(lines, "plan"))


@pytest.mark.parametrize("key", ["policy", "at"])
def test_a_null_text_is_not_the_word_none(key: str) -> None:
    try:
        (plan,) = _load({**HEAD, key: None}, ACTION, END)
    except DataError:
        return
    assert getattr(plan, key) == ""


def _edited(*records: Any) -> tuple[list[int], list[str]]:
    """The ids of a plan's actions, and what is said of it."""
    warnings: list[str] = []
    (plan,) = load_plans(_lines(*records), "plan", warnings.append)
    return [action.id for action in plan.actions], warnings


@pytest.mark.parametrize("actions", [0, 2, -1])
def test_a_wrong_count_of_actions_is_an_edit(actions: int) -> None:
    assert _edited(HEAD, ACTION, {**END, "actions": actions}) == (
        [1],
        [f"plan: line 3: {actions} actions announced, 1 found: taken as edited by hand"],
    )


def test_the_right_count_is_not_worth_a_word() -> None:
    assert _edited(HEAD, ACTION, END) == ([1], [])


def test_all_actions_may_be_deleted() -> None:
    ids, warnings = _edited(HEAD, END)
    assert (ids, len(warnings)) == ([], 1)


@pytest.mark.parametrize("actions", WRONG["integer"])
def test_a_count_that_is_no_integer_is_refused(actions: Any) -> None:
    with pytest.raises(DataError, match=r"^plan: line 3: missing or wrong 'actions'$"):
        _load(HEAD, ACTION, {**END, "actions": actions})


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
def test_actions_without_an_id_or_with_that_of_another_get_one(
    given: list[int | None], numbered: list[int]
) -> None:
    actions = [{**ACTION, "id": number} for number in given]
    ids, warnings = _edited(HEAD, *actions, {**END, "actions": len(given)})
    assert ids == numbered
    numbers = [number for number in given if number is not None]
    twice = ["two actions have the same id: the later one gets another"]
    assert [line.partition(": line ")[2].partition(": ")[2] for line in warnings] == (
        twice if len(set(numbers)) < len(numbers) else []
    )


def test_an_action_may_lack_its_id() -> None:
    assert _edited(HEAD, _without(ACTION, "id"), END) == ([1], [])


@pytest.mark.parametrize(
    "classes", [{"h": 1}, {"h": None}, {"h": {"a": 1}}, {"h": {"a": None}}, [], ["h"], "h"]
)
def test_malformed_classes_are_refused(classes: Any) -> None:
    with pytest.raises(DataError, match=r"^plan: line 3: "):
        _load({**HEAD, "classes": classes}, ACTION, END)


def test_an_empty_state_is_not_written() -> None:
    (plan,) = _load(HEAD, ACTION, {"kind": "end", "actions": 1})
    assert plan.state == {}
    assert dump_plan(plan).endswith('{"kind":"end","actions":1}\n')


def test_ids_may_come_again_in_the_next_plan() -> None:
    assert len(_load(HEAD, ACTION, END, HEAD, ACTION, END)) == 2


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([HEAD], "plan: plan cut off after line 1: no end record"),
        ([HEAD, ACTION], "plan: plan cut off after line 2: no end record"),
        ([HEAD, ACTION, END, HEAD], "plan: plan cut off after line 4: no end record"),
        ([HEAD, ACTION, HEAD], "plan: line 3: a new plan begins before the end of the last one"),
        ([ACTION, END], "plan: line 1: not a dltools plan"),
        ([END], "plan: line 1: not a dltools plan"),
        ([{"kind": "result", "id": 1}], "plan: line 1: not a dltools plan"),
        ([{}], "plan: line 1: not a dltools plan"),
        ([HEAD, ACTION, END, ACTION], "plan: line 4: not a dltools plan"),
        ([[]], "plan: line 1: not a JSON object"),
        (["plan"], "plan: line 1: not a JSON object"),
        ([None], "plan: line 1: not a JSON object"),
        ([HEAD, 5], "plan: line 2: not a JSON object"),
    ],
)
def test_a_plan_out_of_order_is_refused(records: list[Any], message: str) -> None:
    with pytest.raises(DataError) as refused:
        _load(*records)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    "line",
    [b"{", b"{]", b"\xff\n", b"\x00", b"[" * 100_000, b'{"v":' + b"9" * 5000 + b"}",
     b"PAR1\x15\x04", b"\xff\xff\xff\xff\x00\x01"],
    ids=["open", "crossed", "no UTF-8", "NUL", "deep", "5000 digits", "Parquet", "Arrow"],
)  # fmt: skip
@pytest.mark.parametrize("before", [[], _lines(HEAD)], ids=["first", "second"])
def test_a_line_that_is_no_json_is_refused_by_its_number(before: list[bytes], line: bytes) -> None:
    with pytest.raises(DataError, match=f"^plan: line {len(before) + 1}: not JSON: ") as refused:
        list(load_plans([*before, line], "plan"))
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "lines", [[], [b"\n"], [b"\n", b"  \r\n"]], ids=["empty", "blank", "blanks"]
)
def test_input_without_a_plan_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(DataError, match=r"^plan: empty input: no plan$"):
        list(load_plans(lines, "plan"))


def test_every_cut_of_a_plan_is_refused() -> None:
    plan = _load(HEAD, ACTION, {**ACTION, "id": 2, "reason": "é 🐋"}, {**END, "actions": 2})[0]
    text = dump_plan(plan).encode()
    for cut in range(len(text) - 1):
        with pytest.raises(DataError):
            list(load_plans(text[:cut].splitlines(keepends=True), "plan"))
    assert list(load_plans(text[:-1].splitlines(), "plan")) == [plan]


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


@settings(max_examples=200)
@given(data=st.data())
def test_no_value_breaks_the_reader(data: st.DataObject) -> None:
    records = [dict(HEAD), dict(ACTION), dict(END)]
    record = data.draw(st.sampled_from(records))
    record[data.draw(st.sampled_from(sorted(record)))] = data.draw(_JUNK)
    try:
        found = _load(*records)
    except DataError as error:
        assert str(error).startswith("plan: ")
    else:
        assert list(load_plans("".join(map(dump_plan, found)).encode().splitlines(), "")) == found


@settings(max_examples=100)
@given(noise=st.lists(st.binary(max_size=40), max_size=4))
def test_noise_is_refused(noise: list[bytes]) -> None:
    with pytest.raises(DataError):
        list(load_plans(noise, "plan"))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_does_not_have_are_not_written(value: float) -> None:
    plan = dataclasses.replace(_load(HEAD, ACTION, END)[0], state={"x": value})
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_plan(plan)


def test_text_is_written_as_it_is() -> None:
    plan = dataclasses.replace(_load(HEAD, ACTION, END)[0], policy="größer 🐋")
    assert '"größer 🐋"' in dump_plan(plan)


@settings(max_examples=50)
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


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [
        pytest.param({}, {}, False, id="nothing wanted"),
        pytest.param({}, {"cpus": 2.0}, False, id="nothing wanted of something"),
        pytest.param({"cpus": 1.0}, {}, True, id="unknown"),
        pytest.param({"cpus": None}, {}, True, id="unknown against no quota"),
        pytest.param({"cpus": 1.0}, {"memory": 1}, True, id="another is known"),
        pytest.param({"cpus": 1.0}, {"cpus": 1.0, "memory": 1}, False, id="others do not count"),
        pytest.param({"cpus": 1}, {"cpus": 1.0}, False, id="integer and real"),
        pytest.param({"cpus": 1.0}, {"cpus": 1.009}, False, id="within a hundredth"),
        pytest.param({"cpus": 1.0}, {"cpus": 1.011}, True, id="over a hundredth"),
        pytest.param({"cpus": 0.01}, {"cpus": 0.0119}, False, id="within the engine's precision"),
        pytest.param({"cpus": 0.01}, {"cpus": 0.0125}, True, id="over the engine's precision"),
        pytest.param({"cpus": None}, {"cpus": None}, False, id="no quota twice"),
        pytest.param({"cpus": None}, {"cpus": 4.0}, False, id="no quota and all"),
        pytest.param({"cpus": None}, {"cpus": 16.0}, False, id="no quota and more than all"),
        pytest.param({"cpus": 8.0}, {"cpus": None}, False, id="more than all and no quota"),
        pytest.param({"cpus": 8.0}, {"cpus": 5.0}, False, id="more than all twice"),
        pytest.param({"cpus": None}, {"cpus": 3.9}, True, id="no quota and nearly all"),
        pytest.param({"cpus": 3.9}, {"cpus": None}, True, id="nearly all and no quota"),
        pytest.param({"cpu_weight": 1024}, {"cpu_weight": 1030.0}, False, id="weights alike"),
        pytest.param({"cpu_weight": 1024}, {"cpu_weight": 1040}, True, id="weights apart"),
        pytest.param({"cpu_weight": 1024}, {"cpu_weight": None}, True, id="no weight"),
        pytest.param({"cpuset": "0-3"}, {"cpuset": "0-3"}, False, id="one cpuset"),
        pytest.param({"cpuset": "0"}, {"cpuset": "1"}, True, id="another cpuset"),
        pytest.param({"cpuset": None}, {"cpuset": None}, False, id="no cpuset"),
        pytest.param({"cpuset": None}, {"cpuset": "0"}, True, id="a cpuset to lift"),
        pytest.param({"memory": 2**30}, {"memory": 2**30 + 4095}, False, id="a page"),
        pytest.param({"memory": 2**30}, {"memory": 2**31}, True, id="twice the memory"),
        pytest.param({"memory": None}, {"memory": 2**30}, True, id="a memory limit to lift"),
        pytest.param({"memory": None}, {"memory": None}, False, id="no memory limit"),
        pytest.param({"cpus": 1, "memory": 9}, {"cpus": 1, "memory": 5}, True, id="one of two"),
    ],
)  # fmt: skip
def test_settings_differ(wanted: dict[str, Any], present: dict[str, Any], expected: bool) -> None:
    assert differs(wanted, present, cpus=4.0) is expected


@settings(max_examples=100)
@given(wanted=settings_, cpus=st.floats(0.1, 256))
def test_settings_do_not_differ_from_themselves(wanted: dict[str, Any], cpus: float) -> None:
    assert not differs(wanted, wanted, cpus)


@settings(max_examples=100)
@given(wanted=settings_, name=st.sampled_from(SETTINGS))
def test_a_setting_that_is_not_known_differs(wanted: dict[str, Any], name: str) -> None:
    present = _without(wanted, name)
    assert differs(wanted, present, 4.0) is (name in wanted)
