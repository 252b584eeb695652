"""What JSON is read, and what is refused since it could not be written again."""

from __future__ import annotations

from typing import Any

import pytest

from dltools.notation.json_text import parse_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b"1e308", 1e308),
    ],
)
def test_a_value_is_read(text: bytes, expected: Any) -> None:
    assert parse_json(text) == expected


@pytest.mark.parametrize(
    "text",
    [b'"\\ud800"', b'{"\\udc00": 1}', b"NaN", b"-Infinity", b"1e400", b"9" * 400 + b".0", b"{"],
)
def test_what_could_not_be_written_again_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
