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
from dltools.probe.progress.candidates import Candidate, candidates
from dltools.probe.progress.counters import Count, count, place
from dltools.probe.progress.name_words import COUNTERS, HINTS, Sort, sort
from dltools.probe.progress.phases import PHASES, PhaseWord, phase_before, phase_words
from dltools.probe.progress.shapes import (
    Match,
    Site,
    Span,
    are_short,
    fixed_runs,
    numbered_shape,
    pattern,
    runs_of,
    shape,
    sites,
)
from dltools.probe.progress.tokens import Token, losses_of_phases, named_behind, tokens

_CODE = Regex(
    r"^\s*(?:def|class|import|from|return|if|for|while|else|elif|print|assert|self|parser|const|let"
    r"|config param|namespace|args?|hparams?|usage|warning)\b|\bself\.|[+*]=|[^=]==[^=]|\blambda\b"
    r"|\s#\s|;\s*$|^\s*#|^\s*//|\bTODO\b|\.(?:ckpt|pth?|safetensors|h5|pkl|bin|onnx|keras)\b",
)
"""What source code, settings and names of files look like."""

_LONGEST_HEADING = 100

MOST_SHAPES = 512
"""Shapes of lines that are remembered."""


class Reading(NamedTuple):
    """What the generic reader found in a line.

    `is_sure` says that it stands for itself: a counter, and a metric with a fraction, which
    `has_fraction` says alone.
    """

    points: list[Point]
    is_sure: bool = False
    has_fraction: bool = False


class Understood(NamedTuple):
    """What a shape of lines means: its metrics, normal and as printed, with their numbers, and its
    counters. A heading has counters only.

    `has_fraction` says that a number of a metric has a fraction, `is_plain` that the line begins
    with a metric and a delimiter as programs print it, not as code assigns it.
    """

    metrics: tuple[tuple[str, str], ...]
    totals: tuple[Site | None, ...]
    has_totals: bool
    numbers: tuple[Site | None, ...]
    scale: int
    has_fraction: bool
    is_plain: bool

    def texts(self, runs: list[str]) -> list[str | None]:
        """Return the step, the epoch and the metrics as printed, from the digits of a line."""
        return [None if site is None else site.text(runs) for site in self.numbers]


class _Quick(NamedTuple):
    """A pattern of a shape, what the shape means, and which number each group is."""

    match: Match
    known: Understood
    order: tuple[int | None, ...]


_NOTHING = Understood((), (), False, (), 1, has_fraction=False, is_plain=False)
_OFTEN = 16
"""Lines of a shape after which it gets a pattern: to compile one takes as long as many lines."""

_MOST_QUICK = 4
_EMPTY = Reading([])
_NO_COUNT = Count(None, None)


class Named:
    """The generic reader of one log; it remembers the step or epoch of a heading."""

    name = "named"
    partial = False

    def __init__(self) -> None:
        """No heading has come yet."""
        self._above = _NO_COUNT
        self._epoch: float | None = None
        self._shapes: dict[str, Understood] = {}
        self._uses: dict[str, int] = {}
        self._quick: list[_Quick] = []
        self._numbered: set[str] = set()

    def points(self, line: str) -> list[Point]:
        """Return one point for each name; if a name comes twice, the first one."""
        return self.read(line).points

    def read(self, line: str) -> Reading:
        """Return the points of a line, and whether they stand for themselves."""
        for match_line, known, order in self._quick:
            if match := match_line(line):
                groups = match.groups()
                texts = [None if at is None else groups[at] for at in order]
                return self._reading(known, texts, [])
        lower = line.lower()
        for hint in HINTS:
            if hint in lower:
                return self._metrics(line, lower)
        if len(line) < _LONGEST_HEADING:
            for word in COUNTERS:
                if word in lower:
                    found = _heading(line)
                    if found is not _NOTHING:
                        step, epoch = found.texts(runs_of(line))
                        self._above = _count(step, found.scale, epoch)
                    break
        return _EMPTY

    def _metrics(self, line: str, lower: str) -> Reading:
        key = shape(line)
        is_numbered = key in self._numbered
        if is_numbered:
            key = numbered_shape(line)
        known = self._shapes.get(key) if key else None
        if known is _NOTHING:
            return _EMPTY
        runs = runs_of(line)
        if known is None or not are_short(runs):
            known = _understand(line, lower)
            if key and (are_short(runs) or known is _NOTHING):
                self._remember(key, known, line)
        elif key:
            self._use(key, known, line, is_numbered=is_numbered)
        return self._reading(known, known.texts(runs), runs) if known.metrics else _EMPTY

    def _remember(self, key: str, known: Understood, line: str) -> None:
        if len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()
            self._uses.clear()
            self._numbered.clear()
        if any(map(str.isdigit, "".join(metric for metric, _ in known.metrics))):
            self._numbered.add(key)
            key = numbered_shape(line)
        self._shapes[key] = known

    def _use(self, key: str, known: Understood, line: str, *, is_numbered: bool) -> None:
        """Count a line of a shape that is known; one that comes often gets a pattern."""
        uses = self._uses[key] = self._uses.get(key, 0) + 1
        if uses != _OFTEN or known.has_totals:
            return
        wanted = sorted((site, at) for at, site in enumerate(known.numbers) if site is not None)
        whole = shape(line) or "" if is_numbered else key
        fixed = fixed_runs(line) if is_numbered else None
        if match := pattern(whole, [site for site, _ in wanted], fixed):
            places = {at: group for group, (_, at) in enumerate(wanted)}
            order = tuple(places.get(at) for at in range(len(known.numbers)))
            self._quick = [*self._quick[1 - _MOST_QUICK :], _Quick(match, known, order)]

    def _reading(self, known: Understood, texts: Sequence[str | None], runs: list[str]) -> Reading:
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
            for (metric, printed), text in zip(known.metrics, texts[2:], strict=True)
        ]
        if known.has_totals:
            points = _shares(points, known.totals, runs)
        if step is None and epoch is None:
            if self._epoch is not None:
                points = [self._placed(point) for point in points]
            is_sure = known.is_plain and points[0].value != 0
            return Reading(points, is_sure, known.has_fraction)
        return Reading(points, known.has_fraction, known.has_fraction)

    def _placed(self, point: Point) -> Point:
        """Return a point of an evaluation with the epoch of the training before it."""
        is_evaluation = point.metric.startswith(("val_", "eval_", "test_"))
        return point._replace(epoch=self._epoch) if is_evaluation else point


def _count(step: str | None, scale: int, epoch: str | None) -> Count:
    return _NO_COUNT if step is None and epoch is None else count(step, scale, epoch)


def _shares(points: list[Point], totals: Sequence[Site | None], runs: list[str]) -> list[Point]:
    """Return points with those that are so many of a total as a share of it."""
    found = []
    for point, total in zip(points, totals, strict=True):
        whole = 0.0 if total is None else number(total.text(runs))
        found.append(point._replace(value=point.value / whole) if whole else point)
    return found


def _understand(line: str, lower: str) -> Understood:
    """Return what lines of the shape of a line mean."""
    found = tokens(line)
    chosen = [one for one in candidates(line, found) if not one.why_not]
    if not chosen and (others := named_behind(line) or losses_of_phases(found)):
        found = sorted([*found, *others], key=lambda token: token.start)
        chosen = [one for one in candidates(line, others) if not one.why_not]
    if not chosen or _CODE.search(line):
        return _NOTHING
    where = place(line, found, chosen[0].start)
    named = _names(chosen, phase_words(line, lower), has_step=where.step is not None)
    kept = [one.token for _, one in named]
    spans = [token.value for token in kept]
    totals = [_total_span(line, token) for token in kept]
    found_sites = sites(line, [where.step, where.epoch, *spans, *totals])
    count_of = 2 + len(spans)
    return Understood(
        tuple((metric, one.name.replace(" ", "_")) for metric, one in named),
        tuple(found_sites[count_of:]),
        any(totals),
        tuple(found_sites[:count_of]),
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
    outside = [word for word in phases
               if not any(one.start <= word.start < one.token.start for one in chosen)]  # fmt: skip
    found: dict[str, Candidate] = {}
    for one, name in zip(chosen, names, strict=True):
        metric = name
        if not metric.startswith(tuple(f"{phase}_" for phase in PHASES)):
            phase = phase_before(phases if names.count(name) > 1 else outside, one.start)
            if phase and (phase != "train" or not has_step):
                metric = f"{phase}_{name}"
        found.setdefault(metric, one)
    return list(found.items())
