"""Curve prediction: exact curves found again, hostile histories borne, real ones beaten."""

from __future__ import annotations

import io
import json
import math
import os
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dltools.plan.policy import curve_fit
from dltools.plan.policy.curve import Curve, from_json
from dltools.plan.policy.metric_series import LearningHistory

ROOT = Path(__file__).parents[3]


def history(shape: Callable[[float], float], n: int = 200) -> tuple[list[float], list[float]]:
    return [float(x) for x in range(n)], [shape(x / n) for x in range(n)]


def fitted(shape: Callable[[float], float], n: int = 200) -> Curve:
    found = curve_fit.fit(*history(shape, n))
    assert found is not None
    return found


@pytest.mark.parametrize("rate", [3.0, 6.0, 12.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_exponential_s_end_is_found(rate: float, sign: int) -> None:
    found = fitted(lambda u: 0.3 + sign * 2 * math.exp(-rate * u))
    end = found.asymptote()
    assert end is not None
    assert end.least <= end.value <= end.greatest
    assert abs(end.value - 0.3) < 0.03
    assert abs(found.value_at(400) - (0.3 + sign * 2 * math.exp(-rate * 2))) < 0.03


def test_a_power_law_s_time_to_a_target_is_found() -> None:
    found = fitted(lambda u: (1 + 10 * u) ** -0.5)
    # 0.2 is met where 1 + 10 u = 25: at work 480, 281 after the last point at 199.
    assert abs(found.work_to(0.2) - 281) < 60


def test_noise_and_spikes_have_little_hold() -> None:
    chance = random.Random(7)
    works, values = history(lambda u: 0.3 + 2 * math.exp(-6 * u))
    values = [v + chance.gauss(0, 0.02) for v in values]
    for place in range(10, 200, 25):
        values[place] = chance.choice([50.0, -50.0, math.nan, math.inf])
    found = curve_fit.fit(works, values)
    assert found is not None
    assert abs(found.value_at(300) - 0.3) < 0.1


def test_the_end_of_what_falls_is_never_passed() -> None:
    assert fitted(lambda u: 0.3 + 2 * math.exp(-6 * u)).work_to(0.1) == math.inf


def test_what_goes_the_other_way_never_meets_the_target() -> None:
    assert fitted(lambda u: 1 + u).work_to(0.5) == math.inf
    assert fitted(lambda u: 1 + u).work_to(-5) == math.inf


def test_a_target_that_the_curve_has_passed_needs_no_work() -> None:
    assert fitted(lambda u: 1 + u).work_to(1.5) == 0.0


def test_a_line_has_no_end() -> None:
    found = fitted(lambda u: 1 - 0.5 * u)
    assert found.asymptote() is None
    assert found.convergence(0.02) == math.inf


def test_flat_is_flat() -> None:
    found = fitted(lambda _: 0.5)
    assert found.is_flat
    assert found.value_at(1e6) == pytest.approx(0.5)
    assert not fitted(lambda u: 1 + u).is_flat


@pytest.mark.parametrize("values", [[], [1.0], [1, 2, 3, 4], [math.nan] * 9, [1e200] * 9])
def test_too_little_is_not_known(values: list[float]) -> None:
    assert curve_fit.fit([float(i) for i in range(len(values))], values) is None


def test_no_work_between_the_points_is_not_known() -> None:
    assert curve_fit.fit([5.0] * 20, [1 / (i + 1) for i in range(20)]) is None


@settings(max_examples=200)
@given(st.lists(st.tuples(st.floats(), st.floats(0, 1e12)), max_size=60), st.floats())
def test_no_history_makes_it_raise(points: list[tuple[float, float]], target: float) -> None:
    works = sorted(work for _, work in points)
    found = curve_fit.fit(works, [value for value, _ in points])
    if found is not None:
        found.value_at(works[-1] * 2)
        assert not found.work_to(target) < 0
        found.asymptote()
        found.convergence(0.02)
        assert from_json(json.loads(json.dumps(found.to_json()))) == found


@settings(max_examples=50)
@given(st.integers(0, 999), st.sampled_from([2.0**-20, 0.5, 8.0, 2.0**20]))
def test_the_scale_of_values_changes_nothing(seed: int, factor: float) -> None:
    chance = random.Random(seed)
    works = [float(i) for i in range(50)]
    values = [1 / (1 + i) + chance.gauss(0, 0.01) for i in range(50)]
    one, other = curve_fit.fit(works, values), curve_fit.fit(works, [v * factor for v in values])
    assert one is not None and other is not None
    assert other.value_at(80) == one.value_at(80) * factor
    assert other.work_to(0.01 * factor) == one.work_to(0.01)


# Histories


def learned(n: int, steps: list[int | None] | None = None, cut: int = 0) -> LearningHistory:
    made = LearningHistory()
    times, values = list(range(n)), [float(i) for i in range(n)]
    all_steps = steps or [None] * n
    for span in (slice(0, cut), slice(cut, n)):
        made.extend(float, times[span], values[span], all_steps[span])
    return made


@pytest.mark.parametrize("n", [0, 1, 200, 255, 256, 300, 511, 512, 513, 5000])
def test_a_history_stays_short_and_even(n: int) -> None:
    made = learned(n)
    assert made.seen == n
    assert len(made.values) < 256
    assert made.values == [float(i) for i in range(0, n, made.stride)]


@given(st.integers(0, 1200), st.data())
def test_a_history_does_not_tell_how_it_was_cut_up(n: int, data: st.DataObject) -> None:
    assert learned(n, cut=data.draw(st.integers(0, n))) == learned(n)


def test_training_that_begins_anew_begins_a_new_history() -> None:
    steps: list[int | None] = [*range(10), *range(5)]
    assert learned(15, steps).values == [10.0, 11.0, 12.0, 13.0, 14.0]


# Real curves


def real_curves() -> Iterator[tuple[str, list[float]]]:
    """The learning curves of the shipped recording, and of real logs where they are at hand."""
    from dltools.observations.formats.reading import read_table

    with (ROOT / "samples" / "digits" / "recording.parquet").open("rb") as file:
        yield from _by_metric(read_table(file, "recording").to_pylist(), "digits")
    data = Path(os.environ.get("DLTOOLS_DATA", "")) / "logs"
    if not os.environ.get("DLTOOLS_DATA") or not data.is_dir():
        return
    from helpers.tools import Tools

    for log in sorted(data.glob("train/*/*")):
        done = Tools()("dl-probe", "--from-log", log, "--format", "parquet")
        if done.returncode == 0:
            rows = read_table(io.BytesIO(done.stdout), log.name).to_pylist()
            yield from _by_metric(rows, log.name)
    for file in sorted(data.glob("curves/uvadlc/*.json")):
        for key, values in json.loads(file.read_text()).items():
            if isinstance(values, list):
                yield f"{file.name} {key}", values


def _by_metric(rows: list[dict[str, object]], name: str) -> Iterator[tuple[str, list[float]]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["kind"] == "progress":
            found.setdefault(f"{name} {row['container_name']} {row['metric']}", []).append(
                row["value"]  # type: ignore[arg-type]
            )
    yield from found.items()


def _smooth(values: list[float], k: int) -> list[float]:
    return [statistics.median(values[max(0, i - k) : i + k + 1]) for i in range(len(values))]


def errors() -> tuple[int, int, dict[str, list[tuple[float, float]]]]:
    """Return how many curves and predictions there were, and of each predictor (relative error of
    the time to a target, error of the last value as a part of the curve's range).

    Predicted after 10, 25 and 50 % of the points. Targets: 90 % of the way from the first to the
    last median, and the best median of the first 80 %. A time is counted up to ten times the true.
    """
    found: dict[str, list[tuple[float, float]]] = {"curve": [], "slope": [], "last": []}
    many = 0
    for name, raw in real_curves():
        values = [v for v in raw if math.isfinite(v)]
        n = len(values)
        if n < 14 or "loss_sum" in name:
            continue
        smooth = _smooth(values, max(1, n // 60))
        first, last = smooth[0], smooth[-1]
        if first == last:
            continue
        many += 1
        sign = 1 if last > first else -1
        targets = (first + 0.9 * (last - first), max(s * sign for s in smooth[: int(0.8 * n) + 1]))
        for target in (targets[0], targets[1] * sign):
            when = next((i for i, s in enumerate(smooth) if s * sign >= target * sign), None)
            for part in (0.1, 0.25, 0.5):
                now = max(5, int(part * n)) - 1
                if when is None or when <= now + 1:
                    continue
                for kind, (time, end) in _predict(values[: now + 1], now, target, n - 1, sign):
                    time = min(max(time, now + 0.5), 10 * when)
                    found[kind].append(
                        (abs(time - when) / when, min(10, abs(end - last) / abs(last - first)))
                    )
    return many, len(found["curve"]), found


def _predict(
    seen: list[float], now: int, target: float, end: int, sign: int
) -> Iterator[tuple[str, tuple[float, float]]]:
    half = max(2, (now + 1) // 5)
    a, b = (
        statistics.median(seen[-half:][: half // 2]),
        statistics.median(seen[-half:][half // 2 :]),
    )
    slope = (b - a) / (half / 2)
    reached = slope * (target - b) > 0
    yield "slope", (now + (target - b) / slope if reached else math.inf, b + slope * (end - now))
    level = statistics.median(seen[-max(2, (now + 1) // 10) :])
    yield "last", (now if (level - target) * sign >= 0 else math.inf, level)
    curve = curve_fit.fit([float(i) for i in range(now + 1)], seen)
    if curve is None:
        yield "curve", (math.inf, level)
    else:
        yield "curve", (now + curve.work_to(target), curve.value_at(end))


def medians() -> tuple[int, dict[str, list[float]]]:
    _, predictions, found = errors()
    return predictions, {
        kind: [statistics.median(column) for column in zip(*pairs, strict=True)]
        for kind, pairs in found.items()
    }


def test_it_foresees_the_values_of_the_shipped_recording_best() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DLTOOLS_DATA", raising=False)
        predictions, found = medians()
    assert predictions >= 20
    assert found["curve"][1] < min(found["slope"][1], found["last"][1]), found
    assert found["curve"][0] < found["last"][0], found


def test_it_beats_the_last_slope_and_the_last_value_on_real_curves() -> None:
    if not (Path(os.environ.get("DLTOOLS_DATA", "")) / "logs" / "curves").is_dir():
        pytest.skip("DLTOOLS_DATA names no directory with logs of real trainings")
    predictions, found = medians()
    assert predictions >= 100
    for naive in ("slope", "last"):
        assert found["curve"][0] < found[naive][0], found
        assert found["curve"][1] < found[naive][1], found
