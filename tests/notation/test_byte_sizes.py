"""Numbers of bytes as people read them."""

from __future__ import annotations

import pytest

from dltools.notation.byte_sizes import format_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.977 KiB"),
        (64 << 20, "64 MiB"),
        (3 << 29, "1.5 GiB"),
        (5 << 40, "5.12e+03 GiB"),
    ],
)
def test_three_digits_and_a_unit(count: int, text: str) -> None:
    assert format_bytes(count) == text
