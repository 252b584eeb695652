"""The labels that a container may carry."""

import json
import math

import pytest

from dltools.labels import is_true, longest_pause_s, parse_labels, unknown_labels


@pytest.mark.parametrize("text", [None, "", "{", "[]", "1", "null", "[" * 100_000])
def test_a_text_that_is_no_object_has_no_labels(text) -> None:
    assert parse_labels(text) == {}


def test_names_and_values_become_text_that_can_be_written() -> None:
    text = json.dumps({"a": 1, "b": None, "c\ud800": "\udfff"})
    assert parse_labels(text) == {"a": "1", "b": "None", "c?": "?"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dltools.targt", "unknown label dltools.targt: did you mean dltools.target?"),
        ("dltools.target.Final", "did you mean dltools.target.final?"),
        ("dltools.protected", "did you mean dltools.protect?"),
        ("dltools.zzz", "unknown label dltools.zzz; known: dltools.metric, "),
    ],
)
def test_an_unknown_label_is_named_with_what_was_meant(name, said) -> None:
    (found,) = unknown_labels({name: "", "dltools.metric": "", "other": ""})
    assert said in found


@pytest.mark.parametrize(
    ("text", "seconds", "is_said"),
    [("30s", 30, False), ("2m", 120, False), ("2", 2, False), ("0", 0, False), ("0s", 0, False),
     ("1s", 0, True), ("soon", 0, True), ("", 0, False), ("-5s", 0, True)],
)  # fmt: skip
def test_what_is_no_longest_pause_means_never(text, seconds, is_said) -> None:
    labels = {"dltools.longest_pause": text}
    assert longest_pause_s(labels) == seconds
    assert len(unknown_labels(labels)) == is_said
    assert longest_pause_s({}) == math.inf


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (None, False),
        ("0", False),
        ("False", False),
        (" no ", False),
        ("OFF", False),
        ("", True),
        ("1", True),
        ("yes", True),
    ],
)
def test_a_label_means_yes_unless_it_says_no(label, expected) -> None:
    assert is_true(label) is expected
