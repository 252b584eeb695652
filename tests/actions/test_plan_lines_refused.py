"""Plans that are refused, with the line at fault."""

import json
import math
from typing import Any

import pytest
from helpers.plan_records import ACTION, END, HEAD, encoded, loaded, without

from dltools.actions.plan_lines import VERSION, dump_plan, load_plans
from dltools.errors import DataError

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
def test_a_malformed_action_is_refused_by_its_line(key, value) -> None:
    with pytest.raises(DataError, match=r"^plan: line 2: "):
        loaded(HEAD, {**ACTION, key: value}, END)


@pytest.mark.parametrize("queue", [1, True, [], {}, "G" * 201, "G\x1b[2J"])
def test_a_turn_in_a_queue_without_a_name_is_refused(queue) -> None:
    turn = {"group": 0, "turn_s": 2.0, "queue": queue}
    with pytest.raises(DataError, match=r"^plan: line 2: .*queue"):
        loaded(HEAD, {**ACTION, "op": "rotate", "set": turn}, END)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 400 + ".0"])
def test_a_number_that_is_too_large_is_refused_by_its_line(number) -> None:
    """Found by fuzzing: read as infinite, it could not be written again."""
    head = json.dumps({**HEAD, "params": {"alpha": "X"}}).replace('"X"', number)
    with pytest.raises(DataError, match=r"^plan: line 1: not JSON: .* is too large a number$"):
        list(load_plans([head.encode(), *encoded(END)], "plan"))


@pytest.mark.parametrize("key", ["op", "host", "container"])
def test_an_action_that_lacks_a_field_is_refused_by_its_line(key) -> None:
    with pytest.raises(DataError, match=f"^plan: line 2: missing or wrong '{key}'$"):
        loaded(HEAD, without(ACTION, key), END)


@pytest.mark.parametrize("key", ["set", "expect"])
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gpu": 1}, "unknown setting 'gpu'; known: cpus, cpu_weight, cpuset, memory"),
        ({"": 1}, "unknown setting ''"),
        ({"cpus": -1.5}, "cpus is not a positive number: -1.5"),
        ({"cpus": True}, "cpus is not a positive number: True"),
        ({"cpus": math.nan}, "nan"),
        ({"cpus": math.inf}, "inf"),
        pytest.param({"cpus": 10**400}, "cpus is not a positive number", id="400 digits"),
        ({"memory": 0}, "memory is not a positive number"),
        ({"memory": "1g"}, "memory is not a positive number"),
        ({"cpuset": ""}, "cpuset is not a list of CPUs: ''"),
        ({"cpuset": 3}, "cpuset is not a list of CPUs: 3"),
        ({"cpuset": [0, 1]}, "cpuset is not a list of CPUs"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_line(key, setting, message) -> None:
    with pytest.raises(DataError, match=r"^plan: line 2: ") as refused:
        loaded(HEAD, {**ACTION, key: setting}, END)
    assert message.lower() in str(refused.value).lower()


@pytest.mark.parametrize("version", [None, 0, 2, 1.5, "1", [], {}])
def test_another_version_is_refused_and_both_are_named(version) -> None:
    with pytest.raises(DataError, match=f"^plan: line 1: plan version .* reads {VERSION}$"):
        loaded({**HEAD, "v": version}, ACTION, END)


@pytest.mark.parametrize(
    "version", ["2\n0", "\x1b[2J", "9" * 10_000, ["\n"]], ids=["newline", "escape", "long", "list"]
)
def test_a_hostile_version_is_named_in_one_short_printable_line(version) -> None:
    with pytest.raises(DataError, match=r"^plan: line 1: plan version") as refused:
        loaded({**HEAD, "v": version}, ACTION, END)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_a_version_is_required() -> None:
    with pytest.raises(DataError, match=r"^plan: line 1: plan version .?None"):
        loaded(without(HEAD, "v"), ACTION, END)


MALFORMED: dict[str, list[Any]] = {
    "params": WRONG["object"],
    "input": WRONG["object"],
    "next_s": [math.nan, math.inf, 10**400, "20", True, [], {}],
    "covers": ["a", 1, {}, [1], ["a", None]],
    "classes": [{"h": 1}, {"h": None}, {"h": {"a": 1}}, {"h": {"a": None}}, [], ["h"], "h"],
    "state": WRONG["object"],
    "actions": WRONG["integer"],
}
"""By a key of the head, or of the end."""


def test_a_malformed_head_or_end_is_refused() -> None:
    for key, value in ((key, value) for key, values in MALFORMED.items() for value in values):
        more, message = {key: value}, f"missing or wrong '{key}'"
        head, end = (HEAD, END | more) if key in END else (HEAD | more, END)
        line = 3 if key in (*END, "state") else 1
        with pytest.raises(DataError, match=rf"^plan: line {line}: ") as refused:
            loaded(head, ACTION, end)
        assert message in str(refused.value) or key not in ("covers", "actions")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("line", [1, 2, 3])
def test_numbers_that_json_does_not_have_are_refused_by_their_line(word, line) -> None:
    records = [{**HEAD, "params": "?"}, {**ACTION, "set": "?"}, {**END, "state": "?"}]
    lines = encoded(HEAD, ACTION, END)
    lines[line - 1] = encoded(*records)[line - 1].replace(b'"?"', b'{"cpus":%s}' % word.encode())
    with pytest.raises(DataError, match=f"^plan: line {line}: "):
        list(load_plans(lines, "plan"))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([HEAD], "plan: plan cut off after line 1: no end record"),
        ([HEAD, ACTION], "plan: plan cut off after line 2: no end record"),
        ([HEAD, ACTION, END, HEAD], "plan: plan cut off after line 4: no end record"),
        ([HEAD, ACTION, HEAD], "plan: line 3: a new plan begins before the end of the last one"),
        ([ACTION, END], "plan: line 1: not a dltools plan"),
        ([END], "plan: line 1: not a dltools plan"),
        ([{"kind": "result", "id": 1}], "plan: this is what dl-apply has printed"),
        ([[]], "plan: line 1: not a JSON object"),
        ([None], "plan: line 1: not a JSON object"),
        ([HEAD, 5], "plan: line 2: not a JSON object"),
    ],
)
def test_a_plan_out_of_order_is_refused(records, message) -> None:
    with pytest.raises(DataError) as refused:
        loaded(*records)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    "line",
    [b"{", b"{]", b"\xff\n", b"\x00", b"[" * 100_000, b'{"v":' + b"9" * 5000 + b"}"],
    ids=["open", "crossed", "no UTF-8", "NUL", "deep", "5000 digits"],
)
@pytest.mark.parametrize("before", [[], encoded(HEAD)], ids=["first", "second"])
def test_a_line_that_is_no_json_is_refused_by_its_number(before, line) -> None:
    with pytest.raises(DataError, match=f"^plan: line {len(before) + 1}: not JSON: ") as refused:
        list(load_plans([*before, line], "plan"))
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"PAR1\x15\x04", "Parquet"),
        (b"\xff\xff\xff\xff\x00\x01", "Arrow"),
        (b"time,host,kind\n", "a table of observations"),
    ],
)
def test_a_recording_is_no_plan_but_dl_plan_makes_one(line, what) -> None:
    with pytest.raises(DataError, match=f"^plan: this is {what}: put dl-plan between$"):
        list(load_plans([line], "plan"))


@pytest.mark.parametrize(
    "lines", [[], [b"\n"], [b"\n", b"  \r\n"]], ids=["empty", "blank", "blanks"]
)
def test_input_without_a_plan_is_refused(lines) -> None:
    with pytest.raises(DataError, match=r"^plan: empty input: no plan$"):
        list(load_plans(lines, "plan"))


def test_every_cut_of_a_plan_is_refused() -> None:
    plan = loaded(HEAD, ACTION, {**ACTION, "id": 2, "reason": "é 🐋"}, {**END, "actions": 2})[0]
    text = dump_plan(plan).encode()
    for cut in range(len(text) - 1):
        with pytest.raises(DataError):
            list(load_plans(text[:cut].splitlines(keepends=True), "plan"))
    assert list(load_plans(text[:-1].splitlines(), "plan")) == [plan]
