"""Names and values in any text: `Loss: 0.52 Time: 12.1`, `val_acc=0.9`, `grpo_loss is 0.013`.

The generic reader: it tokenizes a line, lets the words of the names decide which are metrics, and
finds the step, the epoch and the phase wherever they stand in the line. It reads what no family
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dltools.observations.metric_names import normal_name
from dltools.probe.progress.base import Point, Regex, number
from dltools.probe.progress.counters import Count, count
from dltools.probe.progress.name_words import HINTS, Sort, sort
from dltools.probe.progress.phases import PHASES, PhaseWord, phase_before, phase_words
from dltools.probe.progress.tokens import Token, tokens

_CODE = Regex(
    r"^\s*(?:def|class|import|from|return|if|for|while|else|elif|print|assert|self|parser|const|let"
    r"|config param|namespace|args?|hparams?|usage|warning)\b|\bself\.|[+*]=|[^=]==[^=]|\blambda\b"
    r"|\s#\s|;\s*$|^\s*#|^\s*//|\bTODO\b|\.(?:ckpt|pth?|safetensors|h5|pkl|bin|onnx|keras)\b",
)
"""What source code, settings and names of files look like."""

_COUNTERS = ("epoch", "iter", "step", "episode", "batch", "round")
_LONGEST_HEADING = 100

_STOP = frozenset({
    "info", "warning", "debug", "error", "the", "a", "an", "this", "with", "and", "at", "for",
    "in", "on", "of", "is", "was", "epoch", "step", "iter", "iteration", "batch", "end", "final",
    "finished", "done", "got", "current", "currently", "now", "new", "last", "after", "before",
    "our", "my", "had", "has", "root", "to", "from", "running",
    "overall", "model", "per", "or", "by", "using", "set", "time", "s", "ms", "it",
})  # fmt: skip
_MOST_WORDS = 3
_LOOK_BACK = 48
_DROPPED = ("average", "avg", "mean", "averaged")


class Reading(NamedTuple):
    """What the generic reader found in a line.

    `is_sure` says that it stands for itself: a counter, and a metric with a fraction.
    """

    points: list[Point]
    is_sure: bool = False


class Candidate(NamedTuple):
    """A token whose name is a metric's, its name with the words before it, and where that begins;
    `why_not` says why it gives no point, "" where it does."""

    token: Token
    name: str
    start: int
    why_not: str


class Named:
    """The generic reader of one log; it remembers the step or epoch of a heading."""

    name = "named"
    partial = False

    def __init__(self) -> None:
        """No heading has come yet."""
        self._above = Count(None, None)
        self._epoch: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return one point for each name; if a name comes twice, the first one."""
        return self.read(line).points

    def read(self, line: str) -> Reading:
        """Return the points of a line, and whether they stand for themselves."""
        lower = line.lower()
        if not any(hint in lower for hint in HINTS):
            if len(line) < _LONGEST_HEADING and any(word in lower for word in _COUNTERS):
                self._above = _heading(line, self._above)
            return Reading([])
        found = tokens(line)
        chosen = [one for one in candidates(line, found) if not one.why_not]
        if not chosen or _CODE.search(line):
            return Reading([])
        at = count(line, found, chosen[0].start)
        if at.step is None or at.epoch is None:
            at = _below(self._above, at)
        self._epoch = self._epoch if at.epoch is None else at.epoch
        points = _points(chosen, phase_words(line, lower), at)
        if at == (None, None) and self._epoch is not None:
            points = [self._placed(point) for point in points]
        return Reading(points, _is_sure(line, chosen, at))

    def _placed(self, point: Point) -> Point:
        """Return a point of an evaluation with the epoch of the training before it."""
        is_evaluation = point.metric.startswith(("val_", "eval_", "test_"))
        return point._replace(epoch=self._epoch) if is_evaluation else point


def _is_sure(line: str, chosen: Sequence[Candidate], at: Count) -> bool:
    """Tell whether a line stands for itself: a fraction with a step or an epoch, or at the start of
    the line with a delimiter as programs print it, not as code assigns it."""
    if at != (None, None):
        return any("." in one.token.text or one.token.text[-1:] in "nNfFyY" for one in chosen)
    first = chosen[0]
    return (
        first.start == 0
        and first.token.delimiter in (":", "=")
        and first.token.delimiter + " " != line[first.token.start + len(first.token.name) + 1 :][:2]
        and sort(first.name) is Sort.METRIC
        and ("." in first.token.text and float(first.token.text.replace(",", "")) != 0)
    )


def _heading(line: str, above: Count) -> Count:
    """Return the counters for the lines below a line, which may be a heading: one counter alone."""
    found = tokens(line)
    if len(found) != 1 or sort(found[0].name) not in (Sort.EPOCH, Sort.STEP):
        return above
    if len(line[: found[0].start].split()) > 2 or any(map(str.isalpha, line[found[0].end :])):
        return above
    return count(line, found)


def _below(above: Count, at: Count) -> Count:
    """Return a line's counters with those of the heading above it that it lacks itself."""
    if at == (None, None):
        return above
    return Count(at.step, above.epoch if at.epoch is None else at.epoch)


def candidates(line: str, found: Sequence[Token]) -> list[Candidate]:
    """Return the tokens of a line that could be metrics."""
    result, left, has_metric = [], 0, False
    for token in found:
        what = sort(token.name)
        name, start = (token.name, token.start)
        if what >= Sort.BESIDE or token.delimiter:
            name, start = _full_name(line, token, left)
            if name != token.name:
                what = sort(name) if what < Sort.BESIDE else max(what, sort(name))
        if what >= Sort.BESIDE:
            why_not = _why_not(token, name, what)
            result.append(Candidate(token, name, start, why_not))
            has_metric = has_metric or (not why_not and what > Sort.BESIDE)
        left = token.end
    if not has_metric:
        return [one._replace(why_not=one.why_not or "no loss, accuracy or reward beside it")
                for one in result]  # fmt: skip
    return result


def _why_not(token: Token, name: str, what: Sort) -> str:
    """Return why a token whose name is a metric's gives no point, "" if it does."""
    if sort(name) is Sort.OTHER:
        return "the words before it make it a setting"
    if token.scale:
        return "a count in thousands"
    if token.total and "acc" not in name.lower():
        return "a share of a total"
    if not token.delimiter and what is not Sort.METRIC:
        return "nothing between name and number"
    if what is Sort.WEAK and not token.is_percent and "." not in token.text:
        return "a whole number beside a usual word"
    return ""


def _full_name(line: str, token: Token, left: int) -> tuple[str, int]:
    """Return a token's name with the words before it that belong to it, and where it begins."""
    begin = max(left, token.start - _LOOK_BACK)
    before = line[begin : token.start]
    if before[-1:] != " " or before[-2:-1] in ("", " "):
        return token.name, token.start
    words = before[:-1].split(" ")
    taken: list[str] = []
    for word in reversed(words):
        if not word.replace("-", "").replace("_", "").replace("@", "").replace("/", "").isalnum():
            inner = word.lstrip("([{|,;:*'\"-")
            if inner and inner.isalnum() and inner[0].isalpha():
                taken.append(inner)
            break
        if word.lower() in _DROPPED:
            continue
        if not word[0].isalpha() or word.lower() in _STOP:
            break
        taken.append(word)
    if len(taken) > _MOST_WORDS:
        taken = taken[: 1 if taken[0].lower() in _QUALIFIERS else 0]
    if not taken:
        return token.name, token.start
    taken.reverse()
    text = " ".join(taken)
    return f"{text} {token.name}", token.start - 1 - len(text)


_QUALIFIERS = frozenset({
    "train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "total", "dev",
})  # fmt: skip


def _points(chosen: Sequence[Candidate], phases: Sequence[PhaseWord], at: Count) -> list[Point]:
    names = [normal_name(one.name) for one in chosen]
    outside = [word for word in phases
               if not any(one.start <= word.start < one.token.start for one in chosen)]  # fmt: skip
    found: dict[str, Point] = {}
    for one, name in zip(chosen, names, strict=True):
        metric = name
        if not metric.startswith(tuple(f"{phase}_" for phase in PHASES)):
            phase = phase_before(phases if names.count(name) > 1 else outside, one.start)
            if phase and (phase != "train" or at.step is None):
                metric = f"{phase}_{name}"
        if metric not in found:
            value = _value(one.token)
            printed = one.name.replace(" ", "_")
            found[metric] = Point(metric, value, at.step, at.epoch, Named.name, printed)
    return list(found.values())


def _value(token: Token) -> float:
    value = number(token.text)
    if token.total:
        total = number(token.total)
        return value / total if total else value
    return value
