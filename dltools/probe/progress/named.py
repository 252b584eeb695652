"""Names and values in any text: `Loss: 0.52 Time: 12.1`, `val_acc=0.9`, `grpo_loss is 0.013`.

The generic reader: it tokenizes a line, lets the words of the names decide which are metrics, and
finds the step, the epoch and the phase wherever they stand in the line. It reads what no family
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dltools.observations.metric_names import normal_name
from dltools.probe.progress.base import NOTHING, Claim, Point, Regex, number
from dltools.probe.progress.candidates import Candidate, candidates
from dltools.probe.progress.counters import Count, count, place
from dltools.probe.progress.name_words import COUNTERS, HINTS, Sort, sort
from dltools.probe.progress.phases import PHASES, PhaseWord, phase_before, phase_words
from dltools.probe.progress.shapes import (
    Site,
    Span,
    are_short,
    numbered_shape,
    runs_in_names,
    runs_of,
    shape,
    sites,
    spans,
)
from dltools.probe.progress.tokens import Token, boxed, losses_of_phases, named_behind, tokens

_CODE = Regex(
    r"^\s*(?:def|class|import|from|return|if|for|while|else|elif|print|assert|self|parser|const|let"
    r"|config param|namespace|args?|hparams?|usage|warning)\b|\bself\.|[+*]=|[^=]==[^=]|\blambda\b"
    r"|\s#\s|;\s*$|^\s*#|^\s*//|\bTODO\b|\.(?:ckpt|pth?|safetensors|h5|pkl|bin|onnx|keras)\b"
)
"""What source code, settings and names of files look like."""

_LONGEST_HEADING = 100

MOST_SHAPES, MOST_KINDS = 512, 4_096
"""Shapes and kinds of lines that are remembered."""


class Understood(NamedTuple):
    """What a shape of lines means: its metrics, normal and as printed, with their numbers, and its
    counters. A heading has counters only.

    `has_fraction` says that a number of a metric has a fraction, `is_plain` that the line begins
    with a metric and a delimiter as programs print it, not as code assigns it.
    """

    metrics: tuple[tuple[str, str], ...]
    has_totals: bool
    numbers: tuple[Site | None, ...]
    scale: int
    has_fraction: bool
    is_plain: bool

    def texts(self, runs: list[str]) -> list[str | None]:
        """Return the step, the epoch, the metrics and their totals as printed, from the digits of a
        line."""
        return [None if site is None else site.text(runs) for site in self.numbers]


class _Laid(NamedTuple):
    """What lines of a kind mean, and where their numbers stand."""

    known: Understood
    spans: tuple[Span | None, ...]


_Key = bytes | tuple[bytes | str, ...]
"""A kind of lines, and the digits in names of these."""

_NOTHING = Understood((), False, (), 1, has_fraction=False, is_plain=False)
_NO_COUNT = Count(None, None)


class Named:
    """The generic reader of one log; it remembers the step or epoch of a heading."""

    name = "named"
    partial = False

    def __init__(self) -> None:
        self._above = _NO_COUNT
        self._epoch: float | None = None
        self._shapes: dict[str, Understood] = {}
        self._numbered: set[str] = set()
        self._laid: dict[_Key, _Laid] = {}
        self._names: dict[bytes, list[Span]] = {}  # where digits are in names, in lines of a kind

    def points(self, line: str) -> list[Point]:
        """Return one point for each name; if a name comes twice, the first one."""
        return self.read(line).points

    def read(self, line: str, kind: bytes | None = None) -> Claim:
        """Return the points of a line, and whether they stand for themselves; `kind` is the line
        with zeros for its digits, None if it is not known."""
        if kind is not None and (laid := self._laid_of(kind, line)) is not None:
            texts = [None if span is None else line[span[0] : span[1]] for span in laid.spans]
            return self._reading(laid.known, texts) if laid.known.metrics else NOTHING
        lower = line.lower()
        for hint in HINTS:
            if hint in lower:
                return self._metrics(line, lower, kind)
        if len(line) < _LONGEST_HEADING:
            for word in COUNTERS:
                if word in lower:
                    found = _heading(line)
                    if found is not _NOTHING:
                        step, epoch = found.texts(runs_of(line))
                        self._above = _count(step, found.scale, epoch)
                    break
        return NOTHING

    def _laid_of(self, kind: bytes, line: str) -> _Laid | None:
        """Return what is known of a kind, for the digits that are in names of a line."""
        found = self._laid.get(kind)
        if found is None and (names := self._names.get(kind)) is not None:
            return self._laid.get((kind, *[line[start:end] for start, end in names]))
        return found

    def _metrics(self, line: str, lower: str, kind: bytes | None) -> Claim:
        key = shape(line)
        is_numbered = key in self._numbered
        if is_numbered:
            key = numbered_shape(line)
        known = self._shapes.get(key) if key else None
        if known is _NOTHING:
            if kind is not None:
                self._lay(kind, known, line, is_numbered=is_numbered)
            return NOTHING
        runs = runs_of(line)
        if known is None or not are_short(runs):
            known = _understand(line, lower)
            if key and (are_short(runs) or known is _NOTHING):
                is_numbered = self._remember(key, known, line)
        if kind is not None:
            self._lay(kind, known, line, is_numbered=is_numbered)
        return self._reading(known, known.texts(runs)) if known.metrics else NOTHING

    def _lay(self, kind: bytes, known: Understood, line: str, *, is_numbered: bool) -> None:
        """Remember where the numbers stand in lines of a kind."""
        if len(self._laid) >= MOST_KINDS:
            self._laid.clear()
            self._names.clear()
        if (found := spans(line, known.numbers)) is None:
            return
        key: _Key = kind
        if is_numbered:
            names = self._names[kind] = runs_in_names(line)
            key = (kind, *[line[start:end] for start, end in names])
        self._laid[key] = _Laid(known, tuple(found))

    def _remember(self, key: str, known: Understood, line: str) -> bool:
        """Remember what a shape means; tell whether digits in its names do."""
        if len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()
            self._numbered.clear()
        is_numbered = any(map(str.isdigit, "".join(metric for metric, _ in known.metrics)))
        if is_numbered:
            self._numbered.add(key)
            key = numbered_shape(line)
        self._shapes[key] = known
        return is_numbered

    def _reading(self, known: Understood, texts: Sequence[str | None]) -> Claim:
        at = _count(texts[0], known.scale, texts[1])
        if at.step is None or at.epoch is None:
            at = _below(self._above, at)
        step, epoch = at
        if epoch is not None:
            self._epoch = epoch
        points = [
            Point(metric, float(text or "nan"), step, epoch, "named", printed)
            if text is None or "," not in text
            else Point(metric, number(text), step, epoch, "named", printed)
            for (metric, printed), text in zip(known.metrics, texts[2:], strict=False)
        ]
        if known.has_totals:
            points = _shares(points, texts[2 + len(points) :])
        if step is None and epoch is None:
            if self._epoch is not None:
                points = [self._placed(point) for point in points]
            is_sure = known.is_plain and points[0].value != 0
            return Claim(points, is_sure, 0, known.has_fraction)
        return Claim(points, known.has_fraction, 0, known.has_fraction)

    def _placed(self, point: Point) -> Point:
        """Return a point of an evaluation with the epoch of the training before it."""
        is_evaluation = point.metric.startswith(("val_", "eval_", "test_"))
        return point._replace(epoch=self._epoch) if is_evaluation else point


def _count(step: str | None, scale: int, epoch: str | None) -> Count:
    return _NO_COUNT if step is None and epoch is None else count(step, scale, epoch)


def _shares(points: list[Point], totals: Sequence[str | None]) -> list[Point]:
    """Return points with those that are so many of a total as a share of it."""
    found = []
    for point, total in zip(points, totals, strict=True):
        whole = 0.0 if total is None else number(total)
        found.append(point._replace(value=point.value / whole) if whole else point)
    return found


def _understand(line: str, lower: str) -> Understood:
    """Return what lines of the shape of a line mean."""
    found = tokens(line)
    chosen = [one for one in candidates(line, found) if not one.why_not]
    if not chosen and (others := boxed(line) or named_behind(line) or losses_of_phases(found)):
        found = sorted([*found, *others], key=lambda token: token.start)
        chosen = [one for one in candidates(line, others) if not one.why_not]
    if not chosen or _CODE.search(line):
        return _NOTHING
    where = place(line, found, chosen[0].start)
    named = _names(chosen, phase_words(line, lower), has_step=where.step is not None)
    kept = [one.token for _, one in named]
    totals = [_total_span(line, token) for token in kept]
    values = [token.value for token in kept]
    has_totals = any(totals)
    return Understood(
        tuple((metric, one.name.replace(" ", "_")) for metric, one in named),
        has_totals,
        tuple(sites(line, [where.step, where.epoch, *values, *(totals if has_totals else ())])),
        where.scale,
        any("." in token.text or token.text[-1:] in "nNfFyY" for token in kept),
        _is_plain(line, chosen[0]),
    )


def _total_span(line: str, token: Token) -> Span | None:
    if not token.total:
        return None
    at = line.rindex(token.total, token.value[1], token.end)
    return at, at + len(token.total)


def _is_plain(line: str, first: Candidate) -> bool:
    """Tell whether a line begins with a metric, as programs print it and code does not."""
    token = first.token
    return (
        first.start == 0
        and token.delimiter in (":", "=")
        and token.delimiter + " " != line[token.start + len(token.name) + 1 :][:2]
        and sort(first.name) is Sort.METRIC
        and "." in token.text
    )


def _heading(line: str) -> Understood:
    """Return the counters for the lines below a line, which may be a heading: one counter alone."""
    found = tokens(line)
    if len(found) != 1 or sort(found[0].name) not in (Sort.EPOCH, Sort.STEP):
        return _NOTHING
    before = line[: found[0].start].split()
    if sum(any(map(str.isalpha, word)) for word in before) > 2:
        return _NOTHING
    if any(map(str.isalpha, line[found[0].end :])):
        return _NOTHING
    where = place(line, found)
    numbers = tuple(sites(line, [where.step, where.epoch]))
    return _NOTHING._replace(numbers=numbers, scale=where.scale)


def _below(above: Count, at: Count) -> Count:
    """Return a line's counters with those of the heading above it that it lacks itself."""
    if at.step is None and at.epoch is None:
        return above
    return Count(at.step, above.epoch if at.epoch is None else at.epoch)


def _names(
    chosen: Sequence[Candidate], phases: Sequence[PhaseWord], *, has_step: bool
) -> list[tuple[str, Candidate]]:
    """Return the metrics, each once, under their normal names with the phase that the line says."""
    names = [normal_name(one.name) for one in chosen]
    outside = [
        word
        for word in phases
        if not any(one.start <= word.start < one.token.start for one in chosen)
    ]
    found: dict[str, Candidate] = {}
    for one, name in zip(chosen, names, strict=True):
        metric = name
        if not metric.startswith(tuple(f"{phase}_" for phase in PHASES)):
            phase = phase_before(phases if names.count(name) > 1 else outside, one.start)
            if phase and (phase != "train" or not has_step):
                metric = f"{phase}_{name}"
        found.setdefault(metric, one)
    return list(found.items())
