"""What others wrote, made fit for a screen, and corrected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.text import listed, printable, printable_lines, suggestion


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain-name_1.0", "plain-name_1.0"),
        ("größe 深度 😀", "größe 深度 😀"),
        ("\x1b[2Jgone", "?[2Jgone"),
        ("a\rb\nc\td\x07\x00\x7f", "a?b?c?d???"),
        ("\x9b31m", "?31m"),  # C1: an escape of one byte
        ("\u202egnp.exe", "?gnp.exe"),  # writes backwards
        ("a\u200bb\ufeff\u2066\ud800", "a?b???"),
    ],
)
def test_what_a_terminal_would_obey_is_replaced(text, expected) -> None:
    assert printable(text) == expected


@given(st.text())
def test_every_text_becomes_one_printable_line(text) -> None:
    assert printable(text).isprintable()
    assert len(printable(text)) == len(text)
    assert printable(printable(text)) == printable(text)


def test_lines_and_tabs_of_data_stay() -> None:
    assert printable_lines("a\tb\n\x1b[31m\tc\r\n") == "a\tb\n?[31m\tc?\n"


def test_a_word_that_is_nearly_a_known_one_is_corrected() -> None:
    assert suggestion("targt", ["metric", "target"]) == ": did you mean target?"
    assert suggestion("TARGET", ["metric", "target"]) == ": did you mean target?"
    assert suggestion("zzz", ["metric", "target"]) == "; known: metric, target"


def test_a_prefix_that_all_words_share_makes_none_alike() -> None:
    assert suggestion("long.prefix.zz", ["long.prefix.metric"], "long.prefix.").startswith(
        "; known"
    )
    assert suggestion("zz", ["metric"]).startswith("; known")


def test_a_message_names_ten_and_counts_the_others() -> None:
    assert listed(["a"]) == "a"
    assert listed(list("abcdefghij")) == "a, b, c, d, e, f, g, h, i, j"
    assert listed([f"job-{n}" for n in range(7_000)]).endswith(", job-9 and 6,990 more")
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
