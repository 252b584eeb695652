"""Finds which tokens of a line are metrics, and their whole names; called by `named`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dltools.observations.metric_names import EVALUATED, PHASES, is_metric, normal_name
from dltools.probe.progress.base import PLAIN_NUMBER, Regex
from dltools.probe.progress.line_counters import INDEX, LOOK_BACK
from dltools.probe.progress.tokens import COUNTER_KINDS, NameKind, Token, is_setting, name_kind

_STOP = frozenset({
    "info", "warning", "debug", "the", "a", "an", "this", "with", "and", "at", "for", "in", "on",
    "of", "is", "was", "epoch", "step", "iter", "iteration", "batch", "end", "final", "finished",
    "done", "got", "current", "currently", "now", "new", "after", "before", "our", "my", "had",
    "has", "root", "to", "from", "running", "overall", "model", "per", "or", "by", "using", "set",
    "time", "s", "ms", "it", "steps", "iterations", "iters", "updates", "am", "pm", "db",
})  # fmt: skip

_ACHIEVED = ("fitness", "score", "scores", "return", "returns", "cost")
_MOST_WORDS = 3
_DROPPED = ("average", "avg", "mean", "averaged")
_WINDOW = Regex(r" ?\((?:last|over|mean|avg|average|running|moving|smoothed|higher|lower)\b[^)]*\)")
_KINDS = ("batch", "epoch", "step", "iter", "iteration")

_UNIT = Regex(
    r"\s?(?:[mun\u00b5]?s|secs?|seconds|minutes|hours|[KMGT]i?B|[kMG]?Hz|[A-Za-z]{1,20}/s(?:ec)?)(?![\w/])"
)

_ONE_OF = Regex(r"\b(?:class|category|label) [#\[]?\d{1,6}\]?:? $", re.IGNORECASE)

_BEST = Regex(r"(?<![\w.-])best(?![a-zA-Z0-9])\s?([^|;)\]]*)", re.IGNORECASE)
"""The best value so far, and the text about it."""

_SUM = Regex(rf"(?:\s?[-+*/]\s?{PLAIN_NUMBER}){{1,9}}\s?=\s?({PLAIN_NUMBER})(?![\w.])")
"""The other terms of a sum or of a share, and what it is."""

_COUNTS = Regex(r"(?:\s?[:=])?\s{1,20}[-+]?\d+\.\d|\s[a-z]{1,20}s\s?[:=]")
"""What makes a whole number before it a count: `Train loss 50 6.5`, `loss of 8 batches: 0.5`."""

_LOGGED = Regex(r"\d:\d\d|\b(?:INFO|DEBUG|WARN|WARNING|ERROR)\b")
_OF_SOURCE = Regex(r"\]|:\s|\s(?:INFO|DEBUG|WARN|WARNING|ERROR)\b")
"""What stands before and behind a module with the number of a line."""

_TASK = Regex(
    r"\b(?:evaluating|evaluation|task|dataset|benchmark)(?: of| on)?[:=]?\s{1,3}['\"]?"
    r"([A-Za-z][\w/-]{1,40})['\"]?\s{0,3}[:|(,-](?!\s?\d)",
    re.IGNORECASE,
)
"""What an evaluation is of, where each task has a line: `Evaluating arc: accuracy 0.25`."""

_COUNTED = Regex(r"\s*\[?\d{1,9}(?:/\d{1,9}|\])\s")
"""A line that begins with its number."""

_CELL = Regex(r"\s*(?:[|\u2502]|$)")


class Candidate(NamedTuple):
    """A token that gives a point; `name` includes the words before it, and begins at `start`."""

    token: Token
    name: str
    start: int


def candidates(line: str, tokens: Sequence[Token]) -> list[Candidate]:
    """Return the tokens of a line that are metrics; none without a loss, accuracy or reward."""
    result, left, has_metric = [], 0, False
    names = {token.start for token in tokens}
    places = {*names}
    twins = _of_phases(line, tokens)
    for token in tokens:
        what = name_kind(token.name)
        if what <= NameKind.BESIDE and token in twins:
            result.append(Candidate(token, twins[token], token.start))
            has_metric, left = True, token.end
            continue
        if what is NameKind.OTHER and _is_of_trainer(line, token):
            what = NameKind.BESIDE
        name, start = (token.name, token.start)
        if what >= NameKind.BESIDE or token.delimiter:
            name, start = _full_name(line, token, left)
            name = _WINDOW.sub("", name) if "(" in name else name
            if name != token.name:
                what = name_kind(name) if what < NameKind.BESIDE else max(what, name_kind(name))
        if what >= NameKind.BESIDE:
            if name_kind(name) is not NameKind.OTHER:
                places.add(start)
            if what <= NameKind.WEAK:
                token = _in_a_cell(line, token, start)
            if total := _SUM.match(line, token.value[1]):
                token = token._replace(text=total[1], total="", value=total.span(1))
            if what is NameKind.WEAK and _is_counted(token, name, tokens):
                what = NameKind.METRIC
            if _is_point(token, name, what) and not _is_other(line, token, start, names):
                result.append(Candidate(token, name, start))
                has_metric = has_metric or what > NameKind.BESIDE
        left = token.end
    if has_metric and (task := _TASK.search(line)):
        result = [
            candidate._replace(name=f"{task[1]} {candidate.name}")
            if candidate.start >= task.end()
            else candidate
            for candidate in result
        ]
    if has_metric and _BEST.search(line):
        result = _without_bests(line, places, result)
        has_metric = any(name_kind(candidate.name) > NameKind.BESIDE for candidate in result)
    return result if has_metric else []


def _of_phases(line: str, tokens: Sequence[Token]) -> dict[Token, str]:
    """Return the tokens, with their names, that a line with a counter gives for several phases, or
    for an evaluation beside a known metric, whatever their names say: `[3] train-pre:0.5
    val-pre:0.4`, `my_own: 0.5 - val_my_own: 0.4`, `epoch=3 loss=0.5 val_mean=0.4`."""
    if not any(phase in line for phase in PHASES) or not (
        _COUNTED.match(line) or any(name_kind(token.name) in COUNTER_KINDS for token in tokens)
    ):
        return {}
    found: dict[str, dict[Token, str]] = {}
    left = 0
    for token in tokens:
        name, left = _full_name(line, token, left)[0], token.end
        phase, _, base = normal_name(name).partition("_")
        base = base.lstrip("0123456789_") if phase in PHASES else normal_name(name)
        if token.delimiter in (":", "=") and "." in token.text and is_metric(base):
            found.setdefault(base, {})[token] = name
    has_metric = any(name_kind(token.name) is NameKind.METRIC for token in tokens)
    return {
        token: name
        for base, names in found.items()
        for token, name in names.items()
        if len({normal_name(name) for name in names.values()}) > 1
        or (has_metric and normal_name(name).startswith(EVALUATED) and not is_setting(base))
    }


def _is_of_trainer(line: str, token: Token) -> bool:
    """Tell whether a token is a metric of a user's own in a dict of Hugging Face's Trainer."""
    is_eval = token.name.startswith("eval_") and line[: token.start].endswith("'")
    return is_eval and is_metric(normal_name(token.name))


def _in_a_cell(line: str, token: Token, start: int) -> Token:
    """Return a token with a bar for its delimiter if it fills a cell: `| Dice 0.91 |`."""
    is_cell = not token.delimiter and line[:start].rstrip()[-1:] in ("|", "\u2502")
    return token._replace(delimiter="|") if is_cell and _CELL.match(line, token.end) else token


def _is_other(line: str, token: Token, start: int, names: set[int]) -> bool:
    """Tell whether a token is no metric by what stands around it: a time, a size or a rate, a
    result of one class alone, a threshold, or a line of the program's source.

    A unit that has a number behind it is the name of that one, `loss 0.5 images/s 7758`; `names`
    are the places of such.
    """
    unit = _UNIT.match(line, token.end)
    is_place = token.delimiter == ":" and token.text.isdecimal() and line[token.value[0] - 1] == ":"
    return bool(
        (unit and not names.intersection(range(unit.start(), unit.end())))
        or _ONE_OF.search(line, max(0, start - LOOK_BACK), start)
        or (token.name.lower() == "cost" and line[:start].rstrip().lower().endswith("time"))
        or ("@" in token.name and token.text[0] == ".")
        or (token.text.isdecimal() and _COUNTS.match(line, token.end))
        or line.rfind("@[", 0, start) > line.rfind("]", 0, start)
        or (is_place and _OF_SOURCE.match(line, token.end) and _LOGGED.search(line, 0, start))
    )


def _without_bests(line: str, places: set[int], result: list[Candidate]) -> list[Candidate]:
    """Return the candidates but for those that repeat the best value so far: `New best model saved
    (Dice: 0.91)`, unlike `best epoch 3, loss 0.5`. `places` are where names begin."""
    spans = [match.span() for match in _BEST.finditer(line)
             if not places.intersection((match.start(), match.start(1)))]  # fmt: skip
    return [
        candidate
        for candidate in result
        if not any(begin < candidate.start < end for begin, end in spans)
    ]


def _is_point(token: Token, name: str, what: NameKind) -> bool:
    """Tell whether a token whose name is a metric's is no setting, count or share, and no usual
    word that a number happens to follow."""
    is_setting = name != token.name and name_kind(name) is NameKind.OTHER
    is_setting |= "_" in token.name and token.name.isupper() and token.text.isdecimal()
    is_share = token.total and "." not in token.text and "acc" not in name.lower()
    is_fraction = "." in token.text or (token.is_percent and token.delimiter not in ("", ","))
    is_usual = what is NameKind.WEAK and not is_fraction
    is_loose = not token.delimiter and what is NameKind.BESIDE
    is_packet = token.is_percent and "loss" in name.lower()
    return not (is_setting or token.scale or is_share or is_loose or is_usual or is_packet)


def _is_counted(token: Token, name: str, tokens: Sequence[Token]) -> bool:
    """Tell whether a usual word is what somebody achieved in a step that the line names."""
    is_named = token.delimiter in (":", "=") and normal_name(name).endswith(_ACHIEVED)
    counters = [other.name.lower() for other in tokens if name_kind(other.name) is NameKind.STEP]
    is_of_episode = "episod" in name.lower()
    return is_named and (is_of_episode or not {"", *counters} <= {"", "round", "game"})


def _full_name(line: str, token: Token, left: int) -> tuple[str, int]:
    """Return a token's name with the words before it that belong to it, and where it begins."""
    begin = max(left, token.start - LOOK_BACK)
    before = line[begin : token.start].replace("\t", " ")
    if before[-1:] != " " or before[-2:-1] in ("", " "):
        return token.name, token.start
    words = before[:-1].split(" ")
    taken: list[str] = []
    at = first = len(before)
    for printed in reversed(words):
        at -= len(printed) + 1
        word = printed.removesuffix("'s")
        if word.lower().rstrip(".") in _DROPPED:
            continue
        if word.endswith(("/s", "/sec")) or INDEX.fullmatch(word):
            break  # the unit of what stands before, or a counter
        if not word.replace("-", "").replace("_", "").replace("@", "").replace("/", "").isalnum():
            inner = word.lstrip("([{|,;:*'\"-")
            if inner and inner.isalnum() and inner[0].isalpha() and inner.lower() not in _DROPPED:
                taken.append(inner)
                first = at + len(word) - len(inner)
            break
        if not taken and word.lower() in _KINDS:  # as in `batch loss`
            taken.append(word)
            first = at
            break
        if not word[0].isalpha() or word == "ERROR" or word.lower() in _STOP:
            break
        taken.append(word)
        first = at
    if len(taken) > _MOST_WORDS:
        taken = taken[: 1 if normal_name(taken[0]) in (*PHASES, "total") else 0]
        first = len(before) - 1 - len("".join(taken))
    if not taken:
        return token.name, token.start
    taken.reverse()
    words, said = (normal_name(name).split("_") for name in ("_".join(taken), token.name))
    is_said = {*words} <= {*said}  # as in `loss train: 2.5, val: 2.4`
    return token.name if is_said else " ".join((*taken, token.name)), begin + first
