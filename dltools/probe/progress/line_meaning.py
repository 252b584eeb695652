"""What a line means, which all lines of its shape have in common; `named` asks for it.

It tells which numbers are metrics, and where the step, the epoch and the phase stand; of a heading,
what it says of the lines below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dltools.observations.metric_names import EVALUATED, PHASES, normal_name
from dltools.probe.progress.base import Regex
from dltools.probe.progress.line_counters import OF_EVALUATION, bar_in, counter_of, place, total_of
from dltools.probe.progress.line_shapes import NO_MEANING, Meaning, Span, marks
from dltools.probe.progress.line_values import Candidate, candidates
from dltools.probe.progress.nearest import enclosed, listed, nearest
from dltools.probe.progress.phases import PhaseWord, phase_before, phase_words
from dltools.probe.progress.prefix import own_start
from dltools.probe.progress.tokens import (
    COUNTER_KINDS,
    COUNTERS,
    NameKind,
    Token,
    name_kind,
    tokens,
    with_meant_names,
)

PHASED = ("train_", *EVALUATED)
"""How a metric that names its phase begins."""

_CODE = Regex(
    r"^(?:\s*(?:def|class|import|from|return|if|for|while|else|elif|print|assert|self|parser|const"
    r"|let|config param|namespace|args?|hparams?|usage|warning)\b|#(?! of )"
    r"|\s+#(?! ?\w+[:=]\s{0,9}\d)|\s+Class\s+Images|\s*//|Test: \[\s*\d+/\d+\]\s+Time\s)"
    r"|\btraining from score\b"
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
    r"|averaged|errors?|metrics?|model|net|perplexity|results?|running|set|begin|start(?:ing)?|stat(?:istic)?s)\b",
    re.IGNORECASE,
)
"""Words of a heading that names a phase."""

_GENERATION = Regex(r"\bgen(?:eration)?\W{1,3}\d", re.IGNORECASE)
_BEST = Regex(r"\bbest(?=(?: [a-z]\w*){1,3} ?[:=])", re.IGNORECASE)
_STATISTIC = Regex(r"\b(avg|average|mean|median|smoothed|running)\W{1,2}$", re.IGNORECASE)
_BEST_EPOCH = Regex(r"(?:^|\bINFO\b|\bWARNING\b)\W{0,9}best epoch\b", re.IGNORECASE)
_FINAL = Regex(rf"\bfinal\b|{_BEST_EPOCH.pattern}", re.IGNORECASE)
_LONGEST_HEADING = 250

_BEHIND_BAR = Regex(r"[^\[\]]{0,200}\d/\d+ \[\d[\d:]{3,12}<[^\]]{0,40}\](?=[A-Z]|\[[A-Z])")
"""A bar of tqdm with text right behind it, which another part of the program has printed."""

_DRAWINGS = 3
"""Drawings at the end of a line, of which the last one with a metric counts."""

_BAR_BEGINS = Regex(r"(?:\b[A-Za-z]\w* #?[\d/]{1,19}: {1,9})?\b\d{1,3}%\|")

_SPENT = Regex(r"\[([\d:]{4,12})")
"""The time that a bar has taken."""

_SO_MANY = Regex(r"((?:[A-Za-z.]{1,20} )?[\w.]{1,40}) (?:\(for \d+ [a-z]+\)|\[\d+-\d+\](?=: \d))")
"""Over how many a loss is taken: `loss (for 1 batch) at step 30: 0.5`, `avg. loss [51-60]: 0.5`."""

_BEFORE_MEAN = Regex(r"(?<=: )\s{0,9}[\d.]+ (?=\(\s{0,9}[\d.]+\))")
"""The value of a batch before the mean: `Acc@1:  34.375 ( 40.625)`."""

_RULE = Regex(r"-{3,}([A-Za-z].*)")
"""A heading in a line of dashes: `----Iteration: 3000----`."""

_IMPROVED = Regex(r"\bMetric (\S{1,60}) improved.{0,80} New best score: ([\d.e+-]{1,30})")
"""Lightning's notice that it is not yet time to stop: often all that a log has."""

_AGAIN = Regex(
    r"\bbest\b[^.=]{0,60}:\s*$|\bfinal (?:evaluation|results?|test|validation)\W*$", re.IGNORECASE
)
"""A heading of results that are said again: `best iteration is:`, `== Final Evaluation ==`."""

_NOTICE, _LONGEST_BAR, _LONGEST_COUNT = ", global step ", 500, 40
_CUT_BAR = Regex(
    r"(\d/\d+ \[\d[\d:]{3,12}<.{0,400}?)([^,\]\s]{0,40})(Epoch \d+, global step \d+): '"
)
"""A bar with Lightning's notice of a checkpoint behind it, which may stand in the middle of a name;
the notice names the step of the training."""


def _own_part(line: str) -> str:
    """Return a line with blanks for what says nothing: the mark of a comment, a bar or what was
    printed behind it, and, of a generation, that its best one is the result."""
    line = line.lstrip("#").rjust(len(line)) if line[:1] == "#" else line
    if line.count("%|") > 1:  # drawings between which carriage returns are lost
        drawn = [line[bar.start() :] for bar in _BAR_BEGINS.finditer(line)]
        last = next(filter(_has_metric, drawn[: -_DRAWINGS - 1 : -1]), drawn[-1] if drawn else line)
        line = last.rjust(len(line))
    if "improved" in line and (better := _IMPROVED.search(line)):
        head = line[: better.start()]
        if _has_metric(head):
            return head.ljust(len(line))
        name, value = better.groups()
        return f"{head}{f'{name}: '.rjust(better.start(2) - len(head))}{value}".ljust(len(line))
    if ("(for " in line or "]: " in line) and (match := _SO_MANY.search(line)):
        line = line[: match.start()] + match[1].rjust(len(match[0])) + line[match.end() :]
    if ": [" in line and OF_EVALUATION.match(line):
        line = _BEFORE_MEAN.sub(lambda match: " " * len(match[0]), line)
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


def understand(line: str) -> Meaning:
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
    totals, bar = totals if has_totals else [], [where.total] if where.is_bar else []
    return Meaning(
        tuple((metric, candidate.name.replace(" ", "_")) for metric, candidate in named),
        has_totals,
        marks(printed, [where.step, where.epoch, *values, *totals, *bar]),
        where.scale,
        len(wholes) < len(named),
        _is_plain(line, chosen[0]),
        wholes,
        is_comment or all(_is_doubtful(candidate) for _, candidate in named),
        bool((_BEST_EPOCH if where.epoch or where.step else _FINAL).search(line))
        or bool(_IMPROVED.search(printed)),
        may_be_set and line[: chosen[0].start].strip().lower() in ("", "mean"),
        phase="test" if OF_EVALUATION.match(printed) else "",
        is_bar=where.is_bar,
        is_end=where.is_end,
        is_dict="{'" in line,
        is_notice=_NOTICE in line,
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
    bar = bar_in(line)
    if bar and bar[0][-2] != "\u2022":  # Rich names the epoch before its bar
        spent = _SPENT.search(line, bar.start(), bar.end())
        spans = [bar.span(1), None, total_of(bar, line), spent.span(1) if spent else None]
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
    numbers = marks(printed, [where.step, where.epoch, where.total, None])
    head = NO_MEANING._replace(numbers=numbers, scale=where.scale, phase=phase)
    return head._replace(is_bar=where.is_bar)


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
        if not metric.startswith(PHASED):
            phase = phase_before(phases if names.count(name) > 1 else outside, one.token.value[0])
            if phase and (phase != "train" or not has_step):
                metric = f"{phase}_{name}"
        if metric in named and (of := _STATISTIC.search(line, max(0, one.start - 12), one.start)):
            metric = normal_name(f"{of[1]} {metric}")  # `loss 0.5, avg. loss 0.6`
        named.setdefault(metric, one)
    return list(named.items())
