"""The interface of all families of log formats, and the expressions they share."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Protocol

from dltools.observations.metric_names import PHASES, is_metric, normal_name


class Point(NamedTuple):
    """One value that a job reported in one line."""

    metric: str
    """The normal name (`metric_names.normal_name`)."""

    value: float
    """What was reported, which may not be finite."""

    step: int | None
    """The job's own, None if it says none."""

    epoch: float | None
    """The job's own, None if it says none."""

    source: str
    """The family that found it."""

    original: str
    """The name as printed."""

    elapsed_s: float | None = None
    """How long the job says it had been running (s), None if it does not say it."""

    epochs: int | None = None
    """How many it says that it will train, None if it does not say it."""

    steps: int | None = None
    """How many it says that it will train, None if it does not say it."""


class Extractor(Protocol):
    """Finds points in a line of text. It never raises on text."""

    def points(self, line: str) -> list[Point]:
        """Return the points of one line, [] for none."""


class Family(Protocol):
    """An extractor of one family of formats; an instance reads one log, from its first line on.

    It returns points only for lines that are unmistakably of its format, because every family is
    asked on every log. It keeps what later lines need (the epoch, a header row). A redrawn bar may
    give the same step again: `PointReader` drops it.
    """

    name: ClassVar[str]
    """What `source` says."""

    partial: ClassVar[bool]
    """Whether its lines stand beside those of another family with the losses, like MLPerf's."""

    def points(self, line: str) -> list[Point] | None:
        """Return the points of one line, [] for none, None for a part of what ends in a later
        line. It never raises on text."""

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may have something for this family, a point or what later lines need.
        `lower` is the line in small letters, with one zero for each number: it is asked once for
        all lines that differ in their digits."""


class Regex:
    """A regular expression that is compiled when first used: most logs need few of them, and
    compiling all would take longer than a sample."""

    def __init__(self, expression: str, flags: int = 0) -> None:
        self._expression, self._flags = expression, flags

    def __getattr__(self, name: str) -> Any:
        """Compile, and keep the methods at hand."""
        compiled = re.compile(self._expression, self._flags)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


PLAIN_NUMBER = (
    r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|[nN]a[nN]|NAN|[iI]nf(?:inity)?)"
)
"""A number without thousands separators: faster, for formats that never have them."""


def number(text: str) -> float:
    """Return the value of a number, perhaps with separators of thousands, as Julia prints it,
    1.5f-3, or as tqdm does, nan.0."""
    if text[-3:] in ("n.0", "N.0", "f.0", "y.0"):
        text = text[:-2]
    return float((text.replace("f", "e") if text[-1:].isdigit() else text).replace(",", ""))


def whole(text: str | None) -> int | None:
    """Return a count such as 1,635 as an integer, None for none or one beyond 64 bits."""
    if text is None:
        return None
    value = int(text.replace(",", "")[:20])
    return value if abs(value) < 2**63 else None


def report(
    source: str,
    pairs: Iterable[tuple[str, str | float]],
    *,
    step: int | None = None,
    epoch: float | None = None,
    phase: str = "",
    elapsed_s: float | None = None,
) -> list[Point]:
    """Return points for the pairs (name as printed, number) that are metrics.

    Names are normalised; `phase` (such as "val") is put before names without a phase. If a name
    comes twice, the first counts. A text that is no number gives no point.
    """
    points: dict[str, Point] = {}
    for original, text in pairs:
        metric = _metric(original, phase)
        if not metric or metric in points:
            continue
        try:
            value = text if isinstance(text, float) else number(text)
        except ValueError:
            continue
        points[metric] = Point(metric, value, step, epoch, source, original, elapsed_s)
    return list(points.values())


@functools.lru_cache(maxsize=4096)
def _metric(original: str, phase: str) -> str:
    """Return the normal name of a metric printed in a phase, "" if it is none."""
    metric = normal_name(original)
    if not is_metric(metric):
        return ""
    if phase and metric.partition("_")[0] not in PHASES:
        return f"{phase}_{metric}"
    return metric


_CLOCK = Regex(r"(?:(?:(?:(\d+) days?, )?(\d+):)?(\d{1,2}):)?(\d+(?:\.\d+)?)s?")


def clock(text: str) -> float | None:
    """Return the seconds of a span such as 01:10, 1:58:03, 2 days, 7:32:05, or 4.5s."""
    match = _CLOCK.fullmatch(text.strip()) if len(text) < 40 else None
    if match is None:
        return None
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds)
