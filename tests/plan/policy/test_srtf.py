"""Shortest remaining time first, worked by hand."""

from helpers.observed_rows import container, decisions_of, node, planner_of, point

from dltools.observations.table import Row
from dltools.plan.policy import srtf
from dltools.plan.realisation.options import Mode


def trained(name: str, epochs: int, of: int, seconds: float) -> list[Row]:
    label = f'{{"dltools.epochs": "{of}"}}'
    return [container(10, name, seconds, labels=label), point(10, name, 0.5, epoch=float(epochs))]


def guessed(name: str, seconds: float) -> list[Row]:
    """A job that tells no length."""
    return [container(10, name, seconds), point(10, name, 1.0)]


def test_the_shortest_by_its_epochs_goes_first() -> None:
    # a: 50 CPU s for 5 of 10 epochs, 50 left; b: 90 for 9, 10 left; c: 20 for 1 of 3, 40 left.
    made = [node(10), *trained("a", 5, 10, 50), *trained("b", 9, 10, 90), *trained("c", 1, 3, 20)]
    found = planner_of(made, srtf.SRTF, Mode.WEIGHT)
    reasons = {name: v.reason for name, v in decisions_of(found).items()}
    assert reasons == {
        "a": "3 of 3: epoch 5 of 10: 50 CPU s left",
        "b": "1 of 3: epoch 9 of 10: 10 CPU s left",
        "c": "2 of 3: epoch 1 of 3: 40 CPU s left",
    }
    assert found.plan({}).gain == "b needs the least and goes first"


def test_the_first_job_stays_first_unless_another_is_shorter_by_a_fifth() -> None:
    begin = [node(10), *trained("a", 5, 10, 50), *trained("b", 4, 10, 40)]  # 50 and 60 left
    later = [row | {"time": row["time"].replace(minute=1)} for row in begin]
    for row, epoch in ((later[2], 5.0), (later[4], 5.1)):
        row["epoch"] = epoch
    later[3]["cpu_seconds"] = 49.0  # 47 left for b: shorter than 50, but not by a fifth
    found = decisions_of(planner_of([*begin, *later], srtf.SRTF, Mode.WEIGHT))
    assert found["a"].reason.startswith("1 of 2")
    found = decisions_of(planner_of([*begin, *later], srtf.SRTF, Mode.WEIGHT, hysteresis=0.0))
    assert found["b"].reason.startswith("1 of 2")


def test_an_unknown_job_goes_first_and_is_later_taken_to_need_what_it_has_had() -> None:
    made = [node(10), *trained("known", 9, 10, 90), *guessed("new", 5), *guessed("opaque", 50)]
    found = decisions_of(planner_of(made, srtf.SRTF, Mode.WEIGHT))
    classes = {name: one.job_class for name, one in found.items()}
    assert classes == {"new": "new", "known": "known", "opaque": "guessed"}
    assert [found[name].reason[0] for name in ("new", "known", "opaque")] == ["1", "2", "3"]
    assert "assumed to need another 50 CPU s, as much as it has had" in found["opaque"].reason


def test_a_guessed_job_is_not_behind_a_longer_one() -> None:
    # opaque has had 50 CPU s; known has 450 left.
    made = [node(10), *trained("known", 1, 10, 50), *guessed("opaque", 50)]
    found = decisions_of(planner_of(made, srtf.SRTF, Mode.WEIGHT))
    assert found["opaque"].reason[0] == "1"
