"""When CPUs are contested: golden cases, and cut anywhere."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.times import MICRO
from dltools.plan.signals.busy_cpus import BusyCpus, CpuLoad, OthersUse


def load(*samples: tuple[float, float], cpus: float = 2.0) -> BusyCpus:
    times = [round(second * MICRO) for second, _ in samples]
    return BusyCpus().after(times, [seconds for _, seconds in samples], [cpus] * len(times), 0.0)


def test_one_sample_tells_nothing() -> None:
    assert load((0, 5.0)).is_contested is None
    assert load((0, 5.0)).share(2.0) is None
    assert load((0, 5.0), (2, math.nan)).is_contested is None
    assert load((0, 100.0), (2, 104.0), (4, 1.0)).is_contested is None  # the host has restarted


def test_busy_cpus_are_contested_at_once() -> None:
    assert load((0, 0.0), (10, 1.0), (11, 3.0)).is_contested
    assert load((0, 0.0), (10, 1.0), (11, 2.7)).is_contested is False
    assert load((0, 0.0), (10, 2.0), (10.2, 2.4)).is_contested is False  # a burst


def test_a_quarter_of_64_cpus_is_not_contested() -> None:
    found = load((0, 0.0), (2, 32.0), (4, 64.0), cpus=64.0)
    assert found.is_contested is False
    assert found.share(64.0) == 0.25
    assert CpuLoad(found).idle_since(2 * MICRO, 64.0) == 96.0
    assert CpuLoad(found).idle_since(3 * MICRO, 64.0) is None


def test_contested_cpus_are_calm_after_ten_seconds_of_less() -> None:
    busy = [(t, 2.0 * t) for t in range(0, 12, 2)]
    half = [(t, 20.0 + (t - 10)) for t in (12, 14, 16, 18, 20)]
    assert load(*busy, *half[:1]).is_contested
    assert load(*busy, *half[:2]).is_contested  # 8 of 10 s
    assert load(*busy, *half).is_contested is False


@given(
    parts=st.lists(st.tuples(st.floats(0.1, 30), st.floats(0, 1)), max_size=30),
    cut=st.integers(0, 30),
)
def test_samples_may_be_added_in_any_pieces(parts, cut) -> None:
    times, busy = [0], [0.0]
    for span, share in parts:
        times.append(times[-1] + round(span * MICRO))
        busy.append(busy[-1] + 4 * share * span)
    sizes = [4.0] * len(times)
    whole = BusyCpus().after(times, busy, sizes, 0.0)
    at = min(cut, len(times))
    first = BusyCpus().after(times[:at], busy[:at], sizes[:at], 0.0)
    assert first.after(times[at:], busy[at:], sizes[at:], 4.0) == whole
    assert len(whole.samples) <= 2 + sum(time > times[-1] - 10 * MICRO for time in times)


def others(*samples: tuple[float, float, dict[str, float]]) -> float | None:
    """The share of two CPUs that others use: seconds, the host's CPU seconds, its jobs' ones."""
    found = OthersUse()
    for seconds, busy_s, attained in samples:
        found = found.after(round(seconds * MICRO), busy_s, attained, 2.0)
    return found.share


def test_what_is_no_job_uses_what_jobs_do_not() -> None:
    """In 5 s the host uses 9 CPU s, its jobs 7.5: others have 0.15 of two CPUs."""
    assert others((0, 1.0, {"a": 1.0, "b": 0.0})) is None
    found = others((0, 1.0, {"a": 1.0, "b": 0.0}), (5, 10.0, {"a": 6.0, "b": 2.5}))
    assert found == pytest.approx(0.15)


def test_what_an_ended_job_has_used_is_not_taken_for_that_of_others() -> None:
    begin, end = (0, 10.0, {"a": 5.0, "b": 5.0}), (5, 20.0, {"a": 10.0, "b": 10.0})
    gone, later = (7, 24.0, {"a": 12.0}), (12, 34.0, {"a": 22.0})
    assert others(begin, end, gone) == pytest.approx(0.0)
    assert others(begin, end, gone, later) == pytest.approx(0.0)


def test_a_small_change_of_a_little_use_is_none() -> None:
    begin, little = (0, 0.0, {"a": 0.0}), (5, 5.3, {"a": 5.0})  # others: 0.03 of two CPUs
    assert others(begin, little, (10, 10.8, {"a": 10.0})) == others(begin, little)  # then 0.05
    assert others(begin, little, (10, 10.95, {"a": 10.0})) == pytest.approx(0.065)
    much = (5, 7.0, {"a": 5.0})
    assert others(begin, much, (10, 14.2, {"a": 10.0})) == pytest.approx(0.22)
