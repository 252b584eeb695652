"""Lines of logs: bars redrawn in place, escape codes, any bytes."""

import pytest
from helpers.log_text import lines_of

from dltools.probe.progress.clean_lines import LONGEST_LINE


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"\n", []),
        (b"  \n\t\n", []),
        (b"a\n", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"1/3\r2/3\r3/3\n", ["1/3", "2/3", "3/3"]),
        (b"\x1b[1mbold\x1b[0m \x1b[38;5;12mblue\x1b[K", ["bold blue"]),
        (b"\x1b[?25lhidden\x1b[?25h", ["hidden"]),
        ("größe 🐋".encode(), ["größe 🐋"]),
        (b"loss \xff\xfe 1", ["loss \ufffd\ufffd 1"]),
        (b"\x00\x01", ["\x01"]),
        (b"x" * (LONGEST_LINE + 1), ["x" * LONGEST_LINE]),
        ("é".encode() * (LONGEST_LINE + 1), ["é" * (LONGEST_LINE // 2)]),
    ],
    ids=lambda part: repr(part)[:30],
)
def test_a_log_entry_is_cut_into_what_it_shows(raw, expected) -> None:
    assert lines_of(raw) == expected
