"""Floods of lines: what is read of them, and what that costs."""

from itertools import pairwise

from dltools.probe.progress import Automatic, PointReader
from dltools.probe.thinning import Chosen, Duty, Thinner, thinned


def line(text: str) -> bytes:
    return f"2026-01-31T12:00:00.123456789Z {text}\n".encode()


def flood(count: int) -> list[bytes]:
    return [line(f"step {number} loss: {1 / (number + 1):.6f}") for number in range(count)]


def texts(chosen: list[Chosen]) -> list[str]:
    return [one.entry.partition(b" ")[2].decode().strip() for one in chosen if one.counts]


def test_usual_logs_and_bursts_are_read_whole() -> None:
    thinner = Thinner()
    assert len(list(thinner.chosen(flood(20_000), 600.0))) == 20_000
    for _ in range(100):
        assert len(list(thinner.chosen(flood(400), 2.0))) == 400


def test_of_a_flood_a_few_lines_are_read_evenly_with_the_first_and_the_last() -> None:
    thinner = Thinner()
    for _ in range(10):
        found = list(thinner.chosen(flood(13_600), 2.0))
    steps = [int(text.split()[1]) for text in texts(found)]
    assert len(steps) == 20
    assert (steps[0], steps[-1]) == (0, 13_599)
    gaps = {later - before for before, later in pairwise(steps)}
    assert max(gaps) - min(gaps) <= 1


def test_what_an_evaluation_says_is_never_left_out() -> None:
    entries = flood(10_000)
    for at in (17, 4_321, 9_998):
        entries[at] = line(f"eval accuracy: 0.{at}")
    found = texts(list(thinned(entries, 20)))
    assert [text for text in found if "eval" in text] == [
        f"eval accuracy: 0.{at}" for at in (17, 4_321, 9_998)
    ]


def test_each_line_read_is_of_the_epoch_that_it_is_of() -> None:
    entries = []
    for epoch in range(2_000):
        entries.append(line(f"Epoch {epoch}/2000"))
        entries += [line(f"step {step}: loss: 0.{epoch:04d}{step}") for step in range(1, 5)]
    expected = {point.value: point.epoch for point in read(entries)}
    assert len(set(expected.values())) == 2_000
    stamped: list[bool] = []
    reader: PointReader[bool] = PointReader(Automatic(), lambda _line, _points: stamped[-1])
    points = []
    for entry, counts in thinned(entries, 20):
        stamped.append(counts)
        points += reader.tagged(entry.partition(b" ")[2])
    counted = [point for counts, point in points if counts]
    assert len(counted) == 10
    assert all(expected[point.value] == point.epoch for point in counted)


def read(entries: list[bytes]) -> list:  # type: ignore[type-arg]
    reader: PointReader[None] = PointReader(Automatic())
    return [point for entry in entries for point in reader.feed(entry.partition(b" ")[2])]


def test_lines_of_a_thousand_kinds_are_bounded_too() -> None:
    entries = [line("xyz"[number % 3] * (number % 1_000 + 1)) for number in range(20_000)]
    assert len(list(thinned(entries, 20))) < 500


def test_a_line_in_parts_is_not_torn() -> None:
    entries = flood(5_000)
    entries[100:100] = [line("a long line, lo")[:-1], line("ss: 0.125")]
    found = list(thinned(entries, 20))
    at = next(n for n, one in enumerate(found) if b"long line" in one.entry)
    assert b"ss: 0.125" in found[at + 1].entry


def test_costly_logs_rest_together_while_the_time_is_used_up() -> None:
    duty = Duty()
    assert duty.may_read(1.0, 0.1)
    duty.note(0.3)
    assert duty.may_read(1.0, 0.1)  # of one sample all are read, or none
    assert not duty.may_read(2.0, 0.1)
    assert duty.may_read(2.0, 0.0005)
