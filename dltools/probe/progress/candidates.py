"""Which names in a line are a metric's, and why others give no point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
