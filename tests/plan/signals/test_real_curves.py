"""Predictions on the curves of real trainings, against simpler ones."""

import io
import json
import math
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from dltools.plan.signals import curves

ROOT = Path(__file__).parents[3]


def real_curves() -> Iterator[tuple[str, list[float]]]:
    """The learning curves of the shipped recording, and of real logs where they are at hand."""
    from dltools.observations.formats.registry import read_table

    with (ROOT / "samples" / "digits" / "recording.parquet").open("rb") as file:
        yield from _by_metric(read_table(file, "recording").to_pylist(), "digits")
    data = Path(os.environ.get("DLTOOLS_DATA", "")) / "logs"
    if not os.environ.get("DLTOOLS_DATA") or not data.is_dir():
        return
    from helpers.tools import Tools

    for log in sorted(data.glob("train/*/*")):
        done = Tools()("dl-probe", log, "--format", "parquet")
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
    last = seen[-half:]
    a, b = statistics.median(last[: half // 2]), statistics.median(last[half // 2 :])
    slope = (b - a) / (half / 2)
    reached = slope * (target - b) > 0
    yield "slope", (now + (target - b) / slope if reached else math.inf, b + slope * (end - now))
    level = statistics.median(seen[-max(2, (now + 1) // 10) :])
    yield "last", (now if (level - target) * sign >= 0 else math.inf, level)
    curve = curves.fit([float(i) for i in range(now + 1)], seen)
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


def test_curves_predict_the_values_of_the_shipped_recording_best() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DLTOOLS_DATA", raising=False)
        predictions, found = medians()
    assert predictions >= 20
    assert found["curve"][1] < min(found["slope"][1], found["last"][1]), found
    assert found["curve"][0] < found["last"][0], found


def test_curves_predict_better_than_the_last_slope_and_the_last_value() -> None:
    if not (Path(os.environ.get("DLTOOLS_DATA", "")) / "logs" / "curves").is_dir():
        pytest.skip("DLTOOLS_DATA names no directory with logs of real trainings")
    predictions, found = medians()
    assert predictions >= 100
    for naive in ("slope", "last"):
        assert found["curve"][0] < found[naive][0], found
        assert found["curve"][1] < found[naive][1], found
