"""The colours of classes in the table of dl-plan."""

import pytest

from dltools.cli.plan.tables import decisions_table
from dltools.plan.decisions import JobDecision
from dltools.plan.policy import registry
from dltools.plan.policy.interface import Allocation, JobClass, Tone, classes_of
from dltools.plan.records import Op


def decision(job_class: str) -> JobDecision:
    allocation = Allocation(0.5, job_class, "because")
    return JobDecision("host", "id", "job", allocation, {}, None, "because", Op.UPDATE)


@pytest.mark.parametrize(
    ("tone", "style"),
    [(Tone.GROWING, "green"), (Tone.WATCHED, "yellow"), (Tone.DONE, "cyan"), (Tone.MISSED, "red"),
     (Tone.PLAIN, "")],
)  # fmt: skip
def test_a_class_has_the_colour_of_its_tone(tone, style) -> None:
    classes = {"X": JobClass("X", "word", "meaning", tone)}
    table = decisions_table([decision("X")], classes, wide=False)
    assert table.styles == [style]


def test_an_unknown_class_has_no_colour() -> None:
    assert decisions_table([decision("-")], {}, wide=True).styles == [""]


@pytest.mark.parametrize(
    ("policy", "name", "style"),
    [("flowcon", "NL", "green"), ("flowcon", "WL", "yellow"), ("flowcon", "CL", "cyan"),
     ("tradl", "P1", "green"), ("tradl", "P3", "cyan"), ("dqoes", "S", "green"),
     ("dqoes", "G", "cyan"), ("dqoes", "B", "red"), ("specon", "PC", "green"),
     ("specon", "WC", "yellow"), ("specon", "CC", "cyan")],
)  # fmt: skip
def test_the_classes_of_the_papers_policies_have_colours(policy, name, style) -> None:
    classes = {one.name: one for one in classes_of(registry.get(policy, []))}
    table = decisions_table([decision(name)], classes, wide=False)
    assert table.styles == [style]
