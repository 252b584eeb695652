"""The generic reader: finds names and values in the lines that no family reads. `match` calls it.

It reads `Loss: 0.52 Time: 12.1`, `val_acc=0.9`, `grpo_loss is 0.013`. It cuts a line into `tokens`,
decides by the words of the names which are metrics (`line_values`), and finds the step and the
epoch (`line_counters`) and the phase (`phases`) anywhere in the line. Where nothing stands beside a
number, `nearest` names it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial

from dltools.observations.metric_names import EVALUATED, PHASES, normal_name
from dltools.probe.progress.base import Point, Regex, number
from dltools.probe.progress.line_counters import NO_COUNT, Count, bar_in, count, counter_of, place
from dltools.probe.progress.line_shapes import (
    NO_MEANING,
    NOTHING,
    Layout,
    Meaning,
    Reading,
    Shape,
    Shapes,
    Span,
    marks,
)
from dltools.probe.progress.line_values import Candidate, candidates
from dltools.probe.progress.nearest import enclosed, listed, nearest
from dltools.probe.progress.phases import PhaseWord, phase_before, phase_words
from dltools.probe.progress.prefix import own_start
from dltools.probe.progress.tokens import (
    COUNTER_KINDS,
    COUNTERS,
    NameKind,
    Stands,
    Token,
    name_kind,
    tokens,
    with_meant_names,
)

_CODE = Regex(
    r"^(?:\s*(?:def|class|import|from|return|if|for|while|else|elif|print|assert|self|parser|const"
    r"|let|config param|namespace|args?|hparams?|usage|warning)\b|#(?! of )"
    r"|\s+#(?! ?\w+[:=]\s{0,9}\d)|\s*//|Test: \[\s*\d+/\d+\]\s+Time\s)"
    r"|\bAveraged stats:|\[yolo\] params:|\b(?:self\.|lambda \w+[,:]|TODO\b|train_runtime\b)|[+*]="
    r"|\bfindfont: |[^=]==[^=>\[\]]|\s#\s(?!\w+: [\d.]+(?:\s|$))|^[^;]*;\s*$|\(\* (?!1 =)[\d.]+ = "
)
"""Patterns of source code and settings, of a sum at the end, of what Caffe weighs for a sum, and of
the batches of an evaluation whose mean follows."""

_SAVED = Regex(
    r"\.(?:ckpt|pth?|safetensors|h5|pkl|bin|onnx|keras)\b"
    r"|\b[Ss]aving (?:the )?(?:best )?(?:model|checkpoint|weights) (?:at|with|from|of) "
    r"|\bsolved in \d|\b[Ss]aved at (?:step|epoch|iter)"
)
"""A file, that one is saved, or that a task is solved: what stands beside it was said before,
unless the line begins with a counter or shows a bar."""

_FRACTION = Regex(r"[.einy]", re.IGNORECASE)
"""What a number has that is not whole by its looks: 0.0, 1e-5, nan, inf."""

_ABOUT_PHASES = Regex(
    r"\b(?:train(?:ing)?|val(?:id(?:ation|ating)?)?|eval(?:uation|uating)?|test(?:ing)?|dev|of|on|the"
    r"|averaged|errors?|metrics?|model|net|perplexity|results?|running|set|start(?:ing)?|stat(?:istic)?s)\b",
    re.IGNORECASE,
)
"""Words of a heading that names a phase."""

_PHASED = ("train_", *EVALUATED)
_GENERATION = Regex(r"\bgen(?:eration)?\W{1,3}\d", re.IGNORECASE)
_BEST = Regex(r"\bbest(?=(?: [a-z]\w*){1,3} ?[:=])", re.IGNORECASE)
_STATISTIC = Regex(r"\b(avg|average|mean|median|smoothed|running)\W{1,2}$", re.IGNORECASE)
_BEST_EPOCH = Regex(r"(?:^|\bINFO\b|\bWARNING\b)\W{0,9}best epoch\b", re.IGNORECASE)
_FINAL = Regex(rf"\bfinal\b|{_BEST_EPOCH.pattern}", re.IGNORECASE)
_LONGEST_HEADING = 250

_BEHIND_BAR = Regex(r"[^\[\]]{0,200}\d/\d+ \[\d[\d:]{3,12}<[^\]]{0,40}\](?=[A-Z]|\[[A-Z])")
"""A bar of tqdm with text right behind it, which another part of the program has printed."""

_BAR_BEGINS = Regex(r"(?:\b[A-Za-z]\w* #?[\d/]{1,19}: {1,9})?\b\d{1,3}%\|")

_TOTAL = Regex(r"/(\d{1,15})")

_RULE = Regex(r"-{3,}([A-Za-z].*)")
"""A heading in a line of dashes: `----Iteration: 3000----`."""

_IMPROVED = Regex(r"\bMetric (\S{1,60}) improved.{0,80} New best score: ([\d.e+-]{1,30})")
"""Lightning's notice that it is not yet time to stop: often all that a log has."""

_NOTICED = Regex(rf"^Epoch \d+, global step \d+: '|{_IMPROVED.pattern}")
_AGAIN = Regex(
    r"\bbest\b[^.=]{0,60}:\s*$|\bfinal (?:evaluation|results?|test|validation)\W*$", re.IGNORECASE
)
"""A heading of results that are said again: `best iteration is:`, `== Final Evaluation ==`."""

_LINES_OF_BEST = 8

_NOTICE, _LONGEST_BAR, _LONGEST_COUNT = ", global step ", 500, 40
_CUT_BAR = Regex(
    r"(\d/\d+ \[\d[\d:]{3,12}<.{0,400}?)([^,\]\s]{0,40})(Epoch \d+, global step \d+): '"
)
"""A bar with Lightning's notice of a checkpoint behind it, which may stand in the middle of a name;
the notice names the step of the training."""

BAR = "bars"
"""The source of what is read beside a bar of tqdm. Where a log is no terminal, each drawing may
have a line of its own."""

_POINT, _READING = partial(tuple.__new__, Point), partial(tuple.__new__, Reading)
"""These make a point and a reading of their fields in C."""


class Named:
    """The generic reader of one log; `above` is the step or epoch of a heading, for the lines below
    that name none, `newest` the newest ones, for an evaluation that names none."""

    def __init__(self, shapes: Shapes | None = None) -> None:
        """Keep what is understood in the shapes of the log's lines."""
        self._shapes = Shapes() if shapes is None else shapes
        self.above = NO_COUNT
        self.newest = NO_COUNT
        self._counts_on = False  # steps go on from one epoch to the next
        self._bar, self._is_evaluation = NO_COUNT, False
        self._shown: int | None = None  # of a bar without metrics
        self._longest = 0  # the steps of the longest such bar
        self._newest_dict: Sequence[str | None] = ()
        self._dicts: set[frozenset[tuple[str, str]]] = set()  # the metrics of dicts below it
        self._counted: set[tuple[str, str]] = set()  # metrics with a counter in their line
        self._stepped: set[str] = set()  # the names of those with a step, but for a bar's
        self._of_best = 0  # how many more lines may say the best results again
        self._title = ""
        self._phase = ""  # of a heading, for the lines below until one names a counter or a phase
        self._below: set[str] = set()  # the metrics below it

    def points(self, line: str) -> list[Point]:
        """Return one point for each name; if a name comes twice, the first one."""
        return self.read(line).points

    def read(self, line: str, layout: Layout | None = None) -> Reading:
        """Return the points of a line, and whether they stand for themselves; `layout` is the
        line's, if it is known."""
        if layout is None:
            layout = self._shapes.of(line)
        if layout.shape.stands is not Stands.ALONE:
            return self._below_title(line, layout.shape)
        meaning, spans = layout.understood(line, _understand)
        if not spans:
            return NOTHING
        return self._reading(meaning, [span and line[span[0] : span[1]] for span in spans])

    def _below_title(self, line: str, shape: Shape) -> Reading:
        """Remember a line that ends with a name, or read the numbers below names."""
        if shape.stands is Stands.ABOVE:
            self._title = line.rstrip()
            return NOTHING
        title, self._title = self._title, ""
        values = line.strip("[]() \t").replace(",", " ").split()
        names = [title[:-1]] if title[-1:] == ":" else title.replace(",", " ").split()
        before, own = names[: -len(values)], names[-len(values) :]
        if len(before) > 1 or len(own) != len(values):
            return NOTHING
        pairs = [f"{name}: {value}" for name, value in zip(own, values, strict=True)]
        return self.read(" ".join([*before, *pairs]))._replace(is_sure=False)

    def _reading(self, meaning: Meaning, texts: Sequence[str | None]) -> Reading:
        at = count(texts[0], meaning.scale, texts[1])
        is_bar, names = meaning.is_bar, [name for name, _ in meaning.metrics]
        if not meaning.metrics:
            if is_bar:  # the longest one is the training's, not that of an evaluation
                total = int(texts[2] or 0)
                if total >= self._longest:
                    self._dicts = self._dicts if at.step == self._shown else set()
                    self._shown, self._longest = at.step, total
                return NOTHING
            self._of_best = _LINES_OF_BEST if meaning.is_final else 0
            if meaning.is_final:
                return NOTHING
            self.above = self.above if at is NO_COUNT else self.above.later(at)
            self._phase, self._below = meaning.phase, set()
            return NOTHING
        if self._of_best:
            self._of_best = self._of_best - 1 if at is NO_COUNT else 0
            meaning = meaning._replace(is_final=True)
        if at.step is None and meaning.is_dict and at.epoch is not None:
            if texts == self._newest_dict:  # another process says it again
                return NOTHING
            self._newest_dict = texts
            at = Count(self._step_of_bar(meaning), at.epoch)
        if texts[0] is not None and not is_bar and not meaning.is_final:
            self._stepped.update(names)
        elif texts[1] is not None and not self._stepped.isdisjoint(names):
            meaning = self._of_epoch(meaning)
        if self._phase:
            meaning = self._in_phase(meaning, has_count=at is not NO_COUNT)
        if self.above is not NO_COUNT and (at.step is None or at.epoch is None):
            at = self.above if at == NO_COUNT else self.above.later(at)
        is_whole = meaning.is_end and at.epoch not in (None, self._bar.epoch)
        if is_bar and self._has_gone_back(at):
            meaning = _of_phase(meaning, "test")
        if is_bar and at.epoch is None and all(name.startswith(EVALUATED) for name in names):
            at = Count(at.step, self.newest.epoch)
        if is_whole:  # a bar that is drawn once says how many steps an epoch has
            at = Count(None, at.epoch)
        step, epoch = at
        source = BAR if is_bar else "named"
        points = [
            _POINT((metric, value, step, epoch, source, printed, None, None, None))
            for (metric, printed), value in zip(meaning.metrics, _values(texts[2:]), strict=False)
        ]
        if meaning.has_totals:
            points = _shares(points, texts[2 + len(points) :])
        if meaning.is_end and epoch is not None:
            points = list(map(_at_end, points))
        if step is None and epoch is None:
            points = points if meaning.is_final else self.placed(points)
            is_sure = meaning.is_plain and points[0].value != 0
        else:
            if (at.epoch or 0) > (self.newest.epoch or 0):
                self._counts_on = (at.step or 0) > (self.newest.step or math.inf)
            self.newest = at if self.newest.epoch is None else self.newest.later(at)
            self._counted.update(meaning.metrics)
            is_sure = meaning.has_fraction and not meaning.is_doubtful
        return _READING((points, meaning, is_sure, False))

    def _in_phase(self, meaning: Meaning, *, has_count: bool) -> Meaning:
        """Return a meaning with the phase of the heading above, which ends before a line with a
        counter, a phase or a metric of its own that came before."""
        names = [metric for metric, _ in meaning.metrics]
        is_over = has_count or any(name.startswith(_PHASED) for name in names)
        if is_over or not self._below.isdisjoint(names):
            self._phase = ""
            return meaning
        self._below.update(names)
        return _of_phase(meaning, self._phase)

    def _of_epoch(self, meaning: Meaning) -> Meaning:
        """Return the meaning of a line about an epoch, in which metrics that others give for steps
        are their means."""
        means = {name: f"{name}_mean" for name in self._stepped}
        return meaning._replace(
            metrics=tuple((means.get(name, name), printed) for name, printed in meaning.metrics),
            wholes=frozenset(means.get(name, name) for name in meaning.wholes),
        )

    def _step_of_bar(self, meaning: Meaning) -> int | None:
        """Return the step of the bar above a dict of Hugging Face's Trainer. Bars are not drawn for
        each: it is that of the first dict with its names."""
        names = frozenset(meaning.metrics)
        step = None if names in self._dicts else self._shown
        self._dicts.add(names)
        return step

    def _has_gone_back(self, at: Count) -> bool:
        """Tell whether a bar has begun anew in the same epoch: it is that of an evaluation."""
        before, self._bar = self._bar, at
        if at.epoch is None or at.epoch != before.epoch:
            self._is_evaluation = False
        elif at.step is not None and before.step is not None and at.step < before.step:
            self._is_evaluation = True
        return self._is_evaluation

    def placed(self, points: list[Point]) -> list[Point]:
        """Return the points of a line; those without step and epoch get the epoch of the heading
        above, those of an evaluation the newest epoch, and the newest step if steps go on from
        epoch to epoch or the log says no epoch; other metrics that never have a counter the newest
        ones."""
        step, epoch = points[0][2:4]
        if step is not None or epoch is not None:
            self.newest = self.newest.later(Count(step, epoch))
            if epoch is None and self.above.epoch is not None:
                return [point._replace(epoch=self.above.epoch) for point in points]
            return points
        is_whole = self.newest.epoch is None or self._counts_on
        of_phase = self.newest if is_whole else Count(None, self.newest.epoch)
        placed = []
        for point in points:
            is_of_phase = point.metric.startswith(EVALUATED)
            is_new = point[4] == "named" and (point[0], point[5]) not in self._counted
            at = of_phase if is_of_phase else self.newest if is_new else NO_COUNT
            placed.append(point if at is NO_COUNT else point._replace(step=at.step, epoch=at.epoch))
        return placed


def _at_end(point: Point) -> Point:
    """Return a point of a full bar of Keras: a validation is the epoch's, and of no step in it."""
    return point._replace(step=None) if point.metric.startswith("val_") else point


def _of_phase(meaning: Meaning, phase: str) -> Meaning:
    """Return the meaning of a line whose metrics are those of a phase, unless they name theirs."""
    names = {
        name: name if name.startswith(_PHASED) else f"{phase}_{name}" for name, _ in meaning.metrics
    }
    return meaning._replace(
        metrics=tuple((names[name], printed) for name, printed in meaning.metrics),
        wholes=frozenset(names[name] for name in meaning.wholes),
    )


def _values(texts: Sequence[str | None]) -> list[float]:
    try:
        return list(map(float, texts))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [number(text or "nan") for text in texts]


def _shares(points: list[Point], totals: Sequence[str | None]) -> list[Point]:
    """Return the points; a number of a total becomes a share of it."""
    shares = []
    for point, total in zip(points, totals, strict=True):
        whole = 0.0 if total is None else number(total)
        shares.append(point._replace(value=point.value / whole) if whole else point)
    return shares


def _own_part(line: str) -> str:
    """Return a line with blanks for what says nothing: the mark of a comment, a bar or what was
    printed behind it, and, of a generation, that its best one is the result."""
    line = line.lstrip("#").rjust(len(line)) if line[:1] == "#" else line
    if line.count("%|") > 1:  # drawings between which carriage returns are lost
        for bar in reversed([*_BAR_BEGINS.finditer(line)]):
            if _has_metric(line[bar.start() :]):
                line = line[bar.start() :].rjust(len(line))
                break
    if "improved" in line and (better := _IMPROVED.search(line)):
        head = line[: better.start()]
        if _has_metric(head):
            return head.ljust(len(line))
        name, value = better.groups()
        return f"{head}{f'{name}: '.rjust(better.start(2) - len(head))}{value}".ljust(len(line))
    if line[:3] == "---" and (match := _RULE.match(line)):
        line = match[1].rjust(len(line))
    if "<" in line and (bar := _BEHIND_BAR.match(line)):
        drawn, behind = bar[0], line[bar.end() :]
        if _has_metric(drawn) and not _has_metric(behind):
            line = drawn.ljust(len(line))
        elif _has_place(behind):
            line = behind.rjust(len(line))
    elif (at := line.find(_NOTICE)) > 0 and (
        bar := _CUT_BAR.search(line, max(0, at - _LONGEST_BAR), at + _LONGEST_COUNT)
    ):
        shown = line[: bar.end(1)] + " " * len(bar[2]) + bar[3]
        line = shown.ljust(len(line))
    return _BEST.sub("    ", line) if _GENERATION.search(line) else line


def _has_metric(text: str) -> bool:
    return bool(candidates(text, tokens(text)))


def _has_place(text: str) -> bool:
    """Tell whether a text has a counter of its own, or no number that might need one."""
    return any(word in text.lower() for word in COUNTERS) or not any(map(str.isdigit, text))


def _understand(line: str) -> Meaning:
    """Return the meaning of a line, which all lines of its shape have."""
    printed, line = line, _own_part(line)
    pairs = with_meant_names(line, enclosed(line, listed(line, tokens(line))))
    chosen = candidates(line, pairs)
    if not chosen and (chosen := candidates(line, others := nearest(line))):
        places = {token.value for token in others}
        others += [token for token in pairs if token.value not in places]
        pairs = sorted(others, key=lambda token: token.start)
    if not chosen:
        lower = line.lower()
        may_head = any(word in lower for word in (*COUNTERS, *PHASES))
        return _heading(line, lower, printed) if may_head else NO_MEANING
    if _CODE.search(line) and " reached " not in line:
        return NO_MEANING
    where = place(line, pairs, chosen[0].start)
    saved = None if where.is_bar else _SAVED.search(line)
    if saved and (where.step or (len(line),))[0] > min(saved.start(), chosen[0].start):
        return NO_MEANING
    named = _names(line, chosen, phase_words(line, line.lower()), has_step=where.step is not None)
    kept = [candidate.token for _, candidate in named]
    is_comment = line[0] != printed[0]
    may_be_set = is_comment or line[:2].isspace()
    wholes = frozenset(
        metric for metric, one in named if not (one.token.total or _FRACTION.search(one.token.text))
    )
    totals = [_total_span(line, token) for token in kept]
    values = [token.value for token in kept]
    has_totals = any(totals)
    return Meaning(
        tuple((metric, candidate.name.replace(" ", "_")) for metric, candidate in named),
        has_totals,
        marks(printed, [where.step, where.epoch, *values, *(totals if has_totals else ())]),
        where.scale,
        len(wholes) < len(named),
        _is_plain(line, chosen[0]),
        wholes,
        is_comment or all(_is_doubtful(candidate) for _, candidate in named),
        bool((_BEST_EPOCH if where.epoch or where.step else _FINAL).search(line))
        or bool(_NOTICED.search(printed)),
        may_be_set and line[: chosen[0].start].strip().lower() in ("", "mean"),
        is_bar=where.is_bar,
        is_end=where.is_end,
        is_dict="{'" in line,
    )


def _is_doubtful(candidate: Candidate) -> bool:
    """Tell whether a metric counts only if lines like its own come again."""
    is_weak = name_kind(candidate.name) is NameKind.WEAK and not candidate.token.delimiter
    return is_weak or candidate.token.delimiter == ","


def _total_span(line: str, token: Token) -> Span | None:
    """Return where the total of a share stands; a value of the most possible, `32.5 / 500`, is
    none."""
    if not token.total or ("." in token.text and "acc" not in token.name.lower()):
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
        and name_kind(first.name) is NameKind.METRIC
        and "." in token.text
        and not ("_" in token.name and token.name.isupper())
    )


def _heading(line: str, lower: str, printed: str) -> Meaning:
    """Return the counters and the phase for the lines below a line, which may be a heading: nothing
    but these. `printed` is the line with what says nothing."""
    if len(line) > _LONGEST_HEADING:
        return NO_MEANING
    if bar := bar_in(line):
        total = _TOTAL.match(line, bar.end(1))
        spans = [bar.span(1), None, total and total.span(1)]
        return NO_MEANING._replace(numbers=marks(printed, spans), is_bar=True)
    if _AGAIN.search(line):
        return NO_MEANING._replace(numbers=(None, None), is_final=True)
    if _BEST_EPOCH.search(line):
        return NO_MEANING
    begin = own_start(line)
    pairs = [token for token in tokens(line) if token.start >= begin]
    words = phase_words(line, lower)
    if not words and not any(word in lower for word in COUNTERS):
        return NO_MEANING
    said = [word for word in words if word.phase != "eval"] or words
    phase = said[-1].phase.replace("train", "") if said else ""
    if words:
        blank = _ABOUT_PHASES.sub(lambda match: " " * len(match[0]), line)
        if not pairs and not any(map(str.isalnum, blank[begin:])):
            return NO_MEANING._replace(numbers=(None, None), phase=phase)
        line = blank
    starts = [token.start for token in pairs if name_kind(counter_of(line, token)) in COUNTER_KINDS]
    before = line[begin : starts[0]].lower().split() if starts else ["total"]
    most = 0 if "trial" in lower else 2
    if sum(any(map(str.isalpha, word)) for word in before) > most or "total" in before:
        return NO_MEANING
    where = place(line, pairs)
    numbers = marks(printed, [where.step, where.epoch])
    return NO_MEANING._replace(numbers=numbers, scale=where.scale, phase=phase)


def _names(
    line: str, chosen: Sequence[Candidate], phases: Sequence[PhaseWord], *, has_step: bool
) -> list[tuple[str, Candidate]]:
    """Return the metrics, each once, by their normal names with the phase that the line names."""
    names = [normal_name(candidate.name) for candidate in chosen]
    outside: Sequence[PhaseWord] = [
        word
        for word in phases
        if not any(candidate.start <= word.start < candidate.token.start for candidate in chosen)
    ]
    if len(phases) == 1 and not outside and phases[0].phase != "train":
        outside = phases  # `validation accuracy: 68.7, mIoU: 28.8`
    named: dict[str, Candidate] = {}
    for one, name in zip(chosen, names, strict=True):
        metric = name
        if not metric.startswith(_PHASED):
            phase = phase_before(phases if names.count(name) > 1 else outside, one.token.value[0])
            if phase and (phase != "train" or not has_step):
                metric = f"{phase}_{name}"
        if metric in named and (of := _STATISTIC.search(line, max(0, one.start - 12), one.start)):
            metric = normal_name(f"{of[1]} {metric}")  # `loss 0.5, avg. loss 0.6`
        named.setdefault(metric, one)
    return list(named.items())
