"""Points that a log shows twice, worked by hand."""

from __future__ import annotations

from dltools.probe.progress.base import Point
from dltools.probe.progress.repeats import Repeats


def drawn(*points: tuple[int, float]) -> list[int]:
    """The steps that are new of (step, value), each drawn over the one before."""
    repeats = Repeats()
    made = [Point("loss", value, step, None, "named", "loss") for step, value in points]
    return [point.step or 0 for point in made if repeats.new([point], is_redrawn=True)]


def test_a_bar_that_moves_on_shows_the_old_value_once() -> None:
    assert drawn((1, 0.9), (2, 0.9), (2, 0.7), (3, 0.7), (3, 0.6)) == [1, 2, 3]


def test_a_value_that_stays_is_dropped_once_and_not_every_other_time() -> None:
    assert drawn(*((step, 0.5) for step in range(1, 8))) == [1, 3, 4, 5, 6, 7]


def test_a_step_after_an_epoch_alone_is_a_bar_that_moves_on() -> None:
    repeats = Repeats()
    assert repeats.new([Point("loss", 0.9, None, 1.0, "named", "loss")], is_redrawn=True)
    assert not repeats.new([Point("loss", 0.9, 5, None, "named", "loss")], is_redrawn=True)
    assert repeats.new([Point("loss", 0.9, 6, None, "named", "loss")], is_redrawn=True)
