"""Targets from labels and from a targets file: what is read, and which faults are named."""

import math

import pytest
from helpers.observed_rows import container, node, point

from dltools.cli.plan.targets_file import read_targets_file
from dltools.errors import ConfigError
from dltools.observations.table import to_table
from dltools.observations.targets import NONE, Targets, parse
from dltools.plan.planner import Planner
from dltools.plan.policy.tradl import TRADL
from dltools.plan.realisation.options import RealisationOptions


def of(**labels: str) -> Targets:
    """The targets that labels give; `target_final` is the label dltools.target.final."""
    return parse({f"dltools.{name.replace('_', '.')}": text for name, text in labels.items()})


def test_without_a_target_other_labels_say_nothing() -> None:
    assert of(metric="loss", objective="down") is NONE


def test_two_tiers_of_a_metric() -> None:
    found = of(metric=" loss ", target="0.5", target_final=" 0.1 ")
    assert found == Targets("loss", "min", first=0.5, final=0.1)
    found = of(metric="accuracy", target="0.9", target_final="0.95")
    assert found == Targets("accuracy", "max", first=0.9, final=0.95)
    assert of(metric="accuracy", target="0.9", objective="MIN").objective == "min"
    for metric in ("loss", "accuracy"):  # the final target may be the first
        assert of(metric=metric, target="0.5", target_final="0.5").final == 0.5


def test_epochs_and_steps_say_how_long_a_job_trains() -> None:
    found = of(epochs="10", steps="2.5e3")
    assert (found.epochs, found.steps, found.metric, found.faults) == (10.0, 2500.0, None, ())


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        ({"target": "0.5"}, "dltools.target without a metric: set dltools.metric too"),
        ({"metric": "loss", "target_final": "0.1"}, "dltools.target.final without dltools.target"),
        ({"metric": "loss", "target": "half"}, "dltools.target is a number, not 'half'"),
        ({"metric": "loss", "target": "90%"},
         "dltools.target is a number, not '90%'; write 0.9 for 90 %"),
        ({"epochs": "0"}, "dltools.epochs is more than 0, not 0"),
        ({"metric": "loss", "target": "0.5", "objective": "up"},
         "dltools.objective is min or max, not 'up'"),
        ({"qoe": "fast"},
         "dltools.qoe is a response time in seconds such as 0.2 or 200ms, not 'fast'"),
    ],
)  # fmt: skip
def test_a_wrong_label_is_named(labels, fault) -> None:
    assert of(**labels).faults == (fault,)


@pytest.mark.parametrize(
    ("metric", "first", "final", "word"),
    [("loss", "0.1", "0.5", "smaller"), ("accuracy", "0.9", "0.8", "larger")],
)
def test_a_final_target_that_is_worse_is_left_out(metric, first, final, word) -> None:
    found = of(metric=metric, target=first, target_final=final)
    assert (found.first, found.final) == (float(first), None)
    (fault,) = found.faults
    assert fault == (
        f"dltools.target.final {final} is worse than dltools.target {first}: "
        f"{metric} is better when {word}"
    )


def test_a_wrong_label_leaves_the_others_as_they_are() -> None:
    found = of(metric="loss", target="0.5", target_final="x", epochs="ten", steps="7")
    assert (found.first, found.final, found.epochs, found.steps) == (0.5, None, None, 7.0)
    assert len(found.faults) == 2


@pytest.mark.parametrize(
    ("objective", "value", "meets"),
    [
        ("min", 0.5, True), ("min", 0.4, True), ("min", 0.6, False),
        ("max", 0.5, True), ("max", 0.6, True), ("max", 0.4, False),
        ("min", math.nan, False), ("max", math.nan, False), ("max", math.inf, True),
    ],
)  # fmt: skip
def test_a_value_meets_a_target_that_it_reaches(objective, value, meets) -> None:
    assert Targets("m", objective, first=0.5).meets(value, 0.5) is meets


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.2", 0.2), ("200ms", 0.2), ("200 MS", 0.2), ("2s", 2.0), (".5", 0.5), ("2e-1", 0.2)]
    + [(text, None) for text in ("", "x", "-1", "0", "nan", "inf", "1h", "200us")],
)
def test_response_times_have_a_unit_or_are_seconds_or_no_target(text, seconds) -> None:
    assert parse({"dltools.qoe": text}).qoe_s == pytest.approx(seconds)


GOOD = """
["bert-*"]
metric = "val_accuracy"
target = 0.9
final = 0.95

[serve]
qoe = "200ms"
"""


def test_a_file_is_read() -> None:
    tiers = {"dltools.target": "0.9", "dltools.target.final": "0.95"}
    bert = {"dltools.metric": "val_accuracy", **tiers}
    read = read_targets_file(GOOD, "t.toml")
    assert read == [("bert-*", bert), ("serve", {"dltools.qoe": "200ms"})]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a]\ntarget = 0.9", "[a]: dltools.target without a metric"),
        ("[a]\nepochs = -1", "is more than 0"),
        ("[a]\nspeed = 1", "unknown key 'speed'"),
        ("a = 1", "not a table"),
        ("[a]\ntarget = [1]", "is a number or text"),
        ("[a", "t.toml: "),
    ],
)
def test_faults_name_the_file_and_what_is_wrong(text, fault) -> None:
    with pytest.raises(ConfigError, match=r"t\.toml") as caught:
        read_targets_file(text, "t.toml")
    assert fault in str(caught.value)


def labels_of(name: str, own: str | None) -> dict[str, str]:
    given = [
        ("*", {"dltools.metric": "loss", "dltools.target": "0.5"}),
        ("b*", {"dltools.target": "0.4"}),
    ]
    made = Planner(TRADL, TRADL.parameters(), RealisationOptions(), None, given)
    made.add(to_table([node(0), container(0, name, 1.0, labels=own), point(0, name, 1.0)]))
    made.complete()
    (host,) = made.plan({}).state["hosts"].values()
    (job,) = host["history"]["containers"].values()
    labels: dict[str, str] = job["labels"]
    return labels


def test_patterns_match_names_later_ones_win_and_labels_win_over_all() -> None:
    assert labels_of("a", None)["dltools.target"] == "0.5"
    assert labels_of("bert", None)["dltools.target"] == "0.4"
    assert labels_of("bert", '{"dltools.target": "0.3"}')["dltools.target"] == "0.3"
