"""What JSON is read, what is refused, and numbers that JSON has no word for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.json_values import from_json_number, parse_json, to_json_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b"1e308", 1e308),
    ],
)
def test_a_value_is_read(text, expected) -> None:
    assert parse_json(text) == expected


@pytest.mark.parametrize(
    "text",
    [b'"\\ud800"', b'{"\\udc00": 1}', b"NaN", b"-Infinity", b"1e400", b"9" * 400 + b".0", b"{"],
)
def test_what_could_not_be_written_again_is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@given(st.floats())
def test_every_number_comes_back_through_strict_json(value) -> None:
    text = json.dumps(to_json_number(value), allow_nan=False)
    assert repr(from_json_number(json.loads(text))) == repr(value)


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "Infinity", "-Infinity", "1.5"])
def test_words_of_other_writers_are_read(text) -> None:
    assert repr(from_json_number(text)) == repr(float(text))


@pytest.mark.parametrize("value", [True, None, [], "", "many"])
def test_what_is_no_number_is_refused(value) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json_number(value)  # type: ignore[arg-type]
