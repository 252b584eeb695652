"""Which names in a line are a metric's, and why others give no point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dltools.probe.progress.base import Regex
from dltools.probe.progress.name_words import Sort, sort
from dltools.probe.progress.tokens import Token

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
_WINDOW = Regex(r" ?\((?:last|over|mean|avg|average|running|moving|smoothed)\b[^)]*\)")
_KINDS = ("batch", "epoch", "step", "iter", "iteration")
_UNIT = Regex(
    r"\s?(?:[mun\u00b5]?s|secs?|seconds|minutes|hours|[KMGT]i?B|[A-Za-z]{1,20}/s(?:ec)?)(?![\w/])"
)
_ONE_OF = Regex(r"\b(?:class|category|label) #?\d{1,6}:? $", re.IGNORECASE)
_BEST = Regex(r"(?:(?<![\w.-])best(?!\w)|\u6700[\u4f18\u4f73])\s?([^|;)\]]*)", re.IGNORECASE)
"""What was best so far, in English or Chinese, and what is said of it."""

_CELL = Regex(r"\s*(?:[|\u2502]|$)")


class Candidate(NamedTuple):
    """A token whose name is a metric's, its name with the words before it, and where that begins;
    `why_not` says why it gives no point, "" where it does."""

    token: Token
    name: str
    start: int
    why_not: str


def candidates(line: str, found: Sequence[Token]) -> list[Candidate]:
    """Return the tokens of a line that could be metrics."""
    result, left, has_metric = [], 0, False
    for token in _of_trials(found):
        what = sort(token.name)
        name, start = (token.name, token.start)
        if what >= Sort.BESIDE or token.delimiter:
            name, start = _full_name(line, token, left)
            name = _WINDOW.sub("", name) if "(" in name else name
            if name != token.name:
                what = sort(name) if what < Sort.BESIDE else max(what, sort(name))
        if what >= Sort.BESIDE:
            if what is Sort.WEAK:
                token = _in_a_cell(line, token, start)
            why_not = _why_not(token, name, what) or _why_not_here(line, token, start)
            result.append(Candidate(token, name, start, why_not))
            has_metric = has_metric or (not why_not and what > Sort.BESIDE)
        left = token.end
    if has_metric and _BEST.search(line):
        result = _without_bests(line, found, result)
        has_metric = any(not one.why_not and sort(one.name) > Sort.BESIDE for one in result)
    if not has_metric:
        return [one._replace(why_not=one.why_not or "no loss, accuracy or reward beside it")
                for one in result]  # fmt: skip
    return result


def _of_trials(found: Sequence[Token]) -> Sequence[Token]:
    """Return tokens with the value of a trial, of a search for settings, under a metric's name."""
    if not any(token.name.lower() == "trial" for token in found):
        return found
    return [token._replace(name="trial_value") if token.name.lower() == "value" else token
            for token in found]  # fmt: skip


def _in_a_cell(line: str, token: Token, start: int) -> Token:
    """Return a token with a bar for its delimiter if it fills a cell: `| Dice 0.91 |`."""
    is_cell = not token.delimiter and line[:start].rstrip()[-1:] in ("|", "\u2502")
    return token._replace(delimiter="|") if is_cell and _CELL.match(line, token.end) else token


def _why_not_here(line: str, token: Token, start: int) -> str:
    """Return why a token gives no point because of what stands around it, "" if it does."""
    if _UNIT.match(line, token.end):
        return "a time, a size or a rate"
    if _ONE_OF.search(line, max(0, start - _LOOK_BACK), start):
        return "of one class alone"
    return ""


def _without_bests(line: str, found: Sequence[Token], result: list[Candidate]) -> list[Candidate]:
    """Return candidates, those that say again what was best so far with why they give no point:
    `New best model saved (Dice: 0.91)`, unlike `best epoch 3, loss 0.5`."""
    names = {token.start for token in found} | {one.start for one in result}
    spans = [match.span() for match in _BEST.finditer(line)
             if not names.intersection((match.start(), match.start(1)))]  # fmt: skip
    return [
        one._replace(why_not="of the best so far")
        if not one.why_not and any(begin < one.start < end for begin, end in spans)
        else one
        for one in result
    ]


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
    before = line[begin : token.start].replace("\t", " ")
    if before[-1:] != " " or before[-2:-1] in ("", " "):
        return token.name, token.start
    words = before[:-1].split(" ")
    taken: list[str] = []
    for word in reversed(words):
        if not word.replace("-", "").replace("_", "").replace("@", "").replace("/", "").isalnum():
            inner = word.lstrip("([{|,;:*'\"-")
            if inner and inner.isalnum() and inner[0].isalpha() and inner.lower() not in _DROPPED:
                taken.append(inner)
            break
        if word.lower() in _DROPPED:
            continue
        if not taken and word.lower() in _KINDS:  # as in `batch loss`
            taken.append(word)
            break
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
