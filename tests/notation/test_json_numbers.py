"""Numbers that JSON has no word for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.json_numbers import from_json_number, to_json_number


@given(st.floats())
def test_every_number_comes_back_through_strict_json(value: float) -> None:
    text = json.dumps(to_json_number(value), allow_nan=False)
    assert repr(from_json_number(json.loads(text))) == repr(value)


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "Infinity", "-Infinity", "1.5"])
def test_words_of_other_writers_are_read(text: str) -> None:
    assert repr(from_json_number(text)) == repr(float(text))


@pytest.mark.parametrize("value", [True, None, [], "", "many"])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json_number(value)  # type: ignore[arg-type]
