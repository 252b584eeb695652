"""Values that are saved as JSON come back by their types, and damage is refused."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import pytest

from dltools.notation.saved_values import from_json, to_json


class _Colour(StrEnum):
    RED = "red"


class _Place(NamedTuple):
    at: int
    part: float = 0.0


@dataclass(frozen=True)
class _Value:
    name: str
    size: float | None = None
    places: tuple[_Place, ...] = ()
    pairs: list[tuple[int, float]] = field(default_factory=list)
    words: frozenset[str] = frozenset()
    colours: Mapping[str, _Colour] = field(default_factory=dict)
    settings: Mapping[Literal["a", "b"], tuple[Any, ...]] = field(default_factory=dict)
    computed: int = field(init=False, default=7)


_WHOLE = _Value(
    "x",
    math.inf,
    (_Place(1, 0.5), _Place(2)),
    [(3, 4.0)],
    frozenset({"b", "a"}),
    {"k": _Colour.RED},
    {"b": (None, 1.5)},
)


@pytest.mark.parametrize("value", [_WHOLE, _Value("y")])
def test_a_value_comes_back(value) -> None:
    text = json.dumps(to_json(value), allow_nan=False)
    assert from_json(_Value, json.loads(text)) == value


def test_a_constant_in_a_field_of_texts_becomes_a_text() -> None:
    assert type(to_json({"colour": next(iter(_Colour))})["colour"]) is str


def test_defaults_are_left_out() -> None:
    assert to_json(_Value("y")) == {"name": "y"}
    assert to_json(_WHOLE)["places"] == [{"at": 1, "part": 0.5}, {"at": 2}]


@pytest.mark.parametrize(
    "saved",
    [
        [],
        {},
        {"name": 1},
        {"name": "x", "size": True},
        {"name": "x", "size": "big"},
        {"name": "x", "places": [{"at": 1.5}]},
        {"name": "x", "places": {}},
        {"name": "x", "pairs": [[1]]},
        {"name": "x", "words": [[]]},
        {"name": "x", "colours": {"k": "blue"}},
        {"name": "x", "colours": {"k": []}},
        {"name": "x", "settings": {"c": []}},
    ],
)
def test_damage_is_refused(saved) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_json(_Value, saved)
