"""Points that a log shows twice, worked by hand."""

import pytest

from dltools.probe.progress import Automatic, PointReader


def read(*pieces: str) -> list[list[tuple[int | None, float]]]:
    """The steps and values that are certain after each piece of a log, and at its end."""
    log = PointReader(Automatic())
    found = [log.feed(piece.encode()) for piece in pieces]
    return [[(point.step, point.value) for point in points] for points in [*found, log.end()]]


def whole(text: str) -> list[tuple[int | None, float]]:
    return [one for piece in read(text) for one in piece]


def bar(step: int, loss: float) -> str:
    return f"{step * 10:3}%|##  | {step}/10 [00:01<00:09, 1.00it/s, loss={loss}]"


@pytest.mark.parametrize("between", ["\r", "\n"])
def test_a_bar_that_moves_on_shows_the_old_value_once(between) -> None:
    drawn = ((1, 0.9), (2, 0.9), (2, 0.7), (3, 0.7), (3, 0.6))
    text = between.join(bar(*one) for one in drawn)
    assert read(text + "\n") == [[(1, 0.9), (2, 0.7)], [(3, 0.6)]]


def test_a_value_that_stays_counts_at_each_step() -> None:
    text = "\r".join(bar(step, 0.5) for step in range(1, 8))
    assert whole(text + "\n") == [(step, 0.5) for step in range(1, 8)]


def test_the_last_drawing_of_a_bar_is_certain_with_the_next_line() -> None:
    text = f"{bar(1, 0.9)}\r{bar(2, 0.8)}\n"
    assert read(text, "saving\n") == [[(1, 0.9)], [(2, 0.8)], []]


def test_the_line_end_of_a_terminal_is_no_drawing() -> None:
    reader = PointReader(Automatic())
    lines = [b"step %d loss: 0.%d\r\n" % (step, step) for step in (1, 2, 3)]
    assert [len(reader.feed(line)) for line in lines] == [1, 1, 1]


def test_a_value_said_again_without_its_counter_is_no_other_point() -> None:
    text = "step 1 loss: 0.5\nsaved the best model, loss: 0.5\nstep 2 loss: 0.25\n"
    assert whole(text) == [(1, 0.5), (2, 0.25)]


def test_a_value_that_comes_again_without_any_counter_counts() -> None:
    found = whole("loss: 0.5\nloss: 0.5\nloss: 0.25\n")
    assert found == [(None, 0.5), (None, 0.5), (None, 0.25)]
