"""How classes look, and the stretches of a job's life in them."""

import pytest

from dltools.plan.policy import registry
from dltools.plan.policy.interface import JobClass, classes_of
from dltools.report.plots.gantt import NO_CLASS, ClassLooks, Stretch, stretches
from dltools.report.timelines import ClassChange

NL, CL = JobClass("NL", "growing", ""), JobClass("CL", "completing", "")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], [(5, 20, None)]),
        ([(5, NL), (10, CL)], [(5, 10, NL), (10, 20, CL)]),
        ([(0, NL), (30, CL)], [(5, 20, NL)]),
    ],
)
def test_stretches_fill_a_jobs_life(changes, expected) -> None:
    found = stretches([ClassChange(*change) for change in changes], 5, 20)
    assert found == [Stretch(*one) for one in expected]


@pytest.mark.parametrize("name", sorted(registry.policies([])))
def test_the_classes_of_a_policy_look_different(name) -> None:
    looks, classes = ClassLooks(), classes_of(registry.get(name, []))
    most = 11  # the queues of las are more than there are looks
    assert len({looks[one] for one in (*classes, None)}) == min(most, len(classes) + 1)
    names = [
        one.name if one.word == one.name else f"{one.name} {one.word}".strip() for one in classes
    ]
    assert [label for label, _ in looks] == [*names, "no class yet" if names else "running"]


def test_a_class_that_is_called_by_its_word_is_named_once() -> None:
    looks = ClassLooks()
    assert looks[JobClass("known", "known", "")]
    assert [label for label, _ in looks] == ["known"]


def test_a_job_without_a_class_is_grey() -> None:
    looks = ClassLooks()
    assert looks[None] == NO_CLASS
    assert list(looks) == [("running", NO_CLASS)]


def test_more_classes_than_looks_are_drawn() -> None:
    looks = ClassLooks()
    assert all(looks[JobClass(str(number), "", "")].fill for number in range(20))
