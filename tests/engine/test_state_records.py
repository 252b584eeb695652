"""Records of state come back as they were; what is damaged is refused."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict

import pytest

from dltools.engine.state_records import Records, decode
from dltools.errors import DataError


class Step(StrEnum):
    BEGIN = "begin"
    END = "end"


@dataclass(frozen=True, slots=True)
class Part:
    number: int
    word: str = ""


class Limits(TypedDict, total=False):
    cpus: float | None


@dataclass(frozen=True, slots=True)
class Whole:
    container_id: str
    container_name: str
    table: Mapping[str, Any]
    texts: Mapping[str, str]
    seconds: float
    is_there: bool = False
    step: Step = Step.BEGIN
    before: Step | None = None
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    tables: Sequence[Mapping[str, Any]] = ()
    limits: Limits | None = None


class Wholes(Records[Whole]):
    record_type = Whole
    what = "record of a whole"


LEAST = {"container_id": "c1", "container_name": "job", "table": {}, "texts": {}, "seconds": 2}
FULL = Whole(
    "c1",
    "job",
    {"a": [None, 1.5]},
    {"a": "1"},
    2.5,
    True,
    Step.END,
    Step.BEGIN,
    Part(1, "x"),
    (Part(2), Part(3)),
    ({"a": 1}, {}),
    {"cpus": None},
)


@pytest.fixture
def records(tmp_path: Path) -> Wholes:
    return Wholes(tmp_path / "state" / "wholes")


def test_a_record_comes_back_as_it_was_until_it_is_removed(records) -> None:
    assert (records.find("c1"), records.all()) == (None, [])
    records.write(FULL)
    assert (records.find("c1"), records.all()) == (FULL, [FULL])
    for _ in range(2):
        records.remove(FULL)
    assert records.all() == []


def test_records_are_in_the_order_of_the_names_of_containers(records) -> None:
    for id_, name in (("c1", "z"), ("c2", "a"), ("c3", "a")):
        records.write(Whole(id_, name, {}, {}, 1.0))
    assert [one.container_id for one in records.all()] == ["c2", "c3", "c1"]


def test_fields_with_a_default_may_be_missing() -> None:
    assert decode(Whole, LEAST) == Whole("c1", "job", {}, {}, 2)


@pytest.mark.parametrize(
    "changes",
    [{"more": 1}, {"container_id": 7}, {"container_name": None}, {"table": []}, {"table": "x"},
     {"texts": {"a": 1}}, {"seconds": "2"}, {"seconds": "NaN"}, {"seconds": True},
     {"is_there": 1}, {"step": "middle"}, {"step": None}, {"before": 7}, {"part": 7}, {"part": {}},
     {"part": {"number": 1.5}},
     {"part": {"number": 1, "more": 2}}, {"parts": {}}, {"parts": [1]}, {"parts": "x"},
     {"limits": 1}, {"limits": {"cpus": "1"}}, {"limits": {"more": 1}}, {"tables": [[]]},
     {"tables": None}],
    ids=str,
)  # fmt: skip
def test_values_of_other_types_are_damage(records, tmp_path, changes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        decode(Whole, LEAST | changes)
    records.write(FULL)
    path = tmp_path / "state" / "wholes" / "x.json"
    path.write_text(json.dumps({"v": 1, **LEAST, **changes}))
    with pytest.raises(DataError, match=f"^{path}: damaged record of a whole: "):
        records.all()
    assert list(records.readable()) == [FULL]


@pytest.mark.parametrize("name", LEAST)
def test_a_field_without_a_default_must_be_there(name) -> None:
    with pytest.raises(ValueError, match=f"it lacks fields: {name}"):
        decode(Whole, {key: value for key, value in LEAST.items() if key != name})


WHOLE = json.dumps({"v": 1, **LEAST})
BROKEN = {
    "empty": "",
    "cut": WHOLE[:-9],
    "not UTF-8": b"\xff\xfe",
    "a number": "3",
    "null": "null",
    "a list": "[]",
    "lists without end": "[" * 100_000,
    "no version": json.dumps(LEAST),
    "another version": WHOLE.replace("1", "2", 1),
    "a name that is no text": WHOLE.replace("job", "\\ud800"),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_record_is_damage(records, tmp_path, text) -> None:
    records.write(FULL)
    path = tmp_path / "state" / "wholes" / "x.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=f"^{path}: damaged record of a whole: "):
        records.all()
    with pytest.raises(DataError, match="damaged record of a whole"):
        records.find("x")
    assert list(records.readable()) == [FULL]
