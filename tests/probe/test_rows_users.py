"""Whose a container is: its label, whom it runs as, or another label; and its priority."""

import pytest

from dltools.engine.interface import Container, Program
from dltools.probe.rows import user_columns


@pytest.mark.parametrize(
    ("labels", "runs_as", "source", "expected"),
    [
        ({}, "1000", "", None),
        ({}, "1000:1000", "container", "1000"),
        ({}, "ann", "container", "ann"),
        ({}, "root", "container", None),
        ({}, "0:0", "container", None),
        ({}, "", "container", None),
        ({"dltools.user": " ann "}, "1000", "container", "ann"),
        ({"com.docker.compose.project": "nlp"}, "", "label:com.docker.compose.project", "nlp"),
        ({"dltools.user": "a\x1bb"}, "", "", "a?b"),
    ],
)
def test_users(labels, runs_as, source, expected) -> None:
    container = Container("c", "job", labels=labels, program=Program(user=runs_as))
    assert user_columns(container, source) == {"user": expected, "priority_weight": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2", 2.0), ("0.01", 0.01), ("100", 100.0), ("0", None), ("101", None), ("nan", None),
     ("high", None)],
)  # fmt: skip
def test_priorities(text, expected) -> None:
    container = Container("c", "job", labels={"dltools.priority": text})
    assert user_columns(container, "")["priority_weight"] == expected
