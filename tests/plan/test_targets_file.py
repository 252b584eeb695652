"""Targets of containers that were started without labels: read, matched, and their faults named."""

from __future__ import annotations

import pytest
from helpers.observed_rows import container, node, point

from dltools.errors import ConfigError
from dltools.observations.table import to_table
from dltools.plan.planner import Planner
from dltools.plan.policy.tradl import TRADL
from dltools.plan.realisation.mode import RealisationOptions
from dltools.plan.targets_file import read

GOOD = """
["bert-*"]
metric = "val_accuracy"
target = 0.9
final = 0.95

[serve]
qoe = "200ms"
"""


def test_a_file_is_read() -> None:
    assert read(GOOD, "t.toml") == [
        ("bert-*", {"dltools.metric": "val_accuracy", "dltools.target": "0.9",
                    "dltools.target.final": "0.95"}),
        ("serve", {"dltools.qoe": "200ms"}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a]\ntarget = 0.9", "[a]: dltools.target without a metric"),
        ("[a]\nmetric = 'loss'\ntarget = 0.2\nfinal = 0.5", "is worse than"),
        ("[a]\nmetric = 'accuracy'\ntarget = '90%'", "write 0.9 for 90 %"),
        ("[a]\nqoe = '5 minutes'", "a response time in seconds such as 0.2 or 200ms"),
        ("[a]\nqoe = 0", "a response time in seconds"),
        ("[a]\nepochs = -1", "is more than 0"),
        ("[a]\nobjective = 'up'\nmetric = 'x'\ntarget = 1", "is min or max"),
        ("[a]\nspeed = 1", "unknown key 'speed'"),
        ("a = 1", "not a table"),
        ("[a]\ntarget = [1]", "is a number or text"),
        ("[a", "t.toml: "),
    ],
)
def test_faults_name_the_file_and_what_is_wrong(text: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=r"t\.toml") as caught:
        read(text, "t.toml")
    assert fault in str(caught.value)


def labels_of(name: str, own: str | None) -> dict[str, str]:
    given = [("*", {"dltools.metric": "loss", "dltools.target": "0.5"}),
             ("b*", {"dltools.target": "0.4"})]  # fmt: skip
    made = Planner(TRADL, TRADL.parameters(), RealisationOptions(), None, given)
    made.add(to_table([node(0), container(0, name, 1.0, labels=own), point(0, name, 1.0)]))
    made.complete()
    (job,) = made.plan({}).state["hosts"]["node"]["containers"].values()
    labels: dict[str, str] = job["labels"]
    return labels


def test_patterns_match_names_later_ones_win_and_labels_win_over_all() -> None:
    assert labels_of("a", None)["dltools.target"] == "0.5"
    assert labels_of("bert", None)["dltools.target"] == "0.4"
    assert labels_of("bert", '{"dltools.target": "0.3"}')["dltools.target"] == "0.3"
