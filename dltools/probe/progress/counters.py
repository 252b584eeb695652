"""Where in the training a line stands: one grammar for epochs and steps.

`Epoch 3/10`, `Epoch: [3][40/500]`, `Epoch:[1/1](10/39695)`, `[3/10][40/500]`, `Iteration 254 |`,
`current_steps: 10`, `[Batch 1/2]`, `step:31K`, `40/500 loss`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dltools.probe.progress.base import Regex, number
from dltools.probe.progress.name_words import Sort, sort, step_rank
from dltools.probe.progress.tokens import Token


class Count(NamedTuple):
    """The step and the epoch that a line says, None for neither."""

    step: int | None
    epoch: float | None


_SCALE = {"": 1, "k": 1_000, "m": 1_000_000, "g": 10**9, "b": 10**9}
_AFTER_EPOCH = Regex(
    r"[\s\])},:|/-]{0,6}(?:of \d+)?[\s\])},:|-]{0,6}"
    r"[\[(]\s{0,9}(\d++)(?:\s{0,3}/\s{0,3}\d++)?[^\w.:=]"
)
_BRACKETS = Regex(
    r"\[\s{0,9}(\d++)\s{0,3}/\s{0,3}\d++\s{0,3}\][\s,-]{0,3}\[\s{0,9}(\d++)\s{0,3}/\s{0,3}\d++"
)
_RATIO = Regex(
    r"(?:(?<=[\s\[(|])|^)(\d++)\s{0,3}/\s{0,3}(?:\d++|\?|Unknown)(?=[\s\])|,:;]|$)"
    r"(?!\s\d\d:\d\d)(?!\s{0,3}(?:MB|GB|MiB|GiB|W\b|KB))"
)
_FIRST = Regex(r"\s{0,9}(?:\[(\d{1,12})\]|(\d{1,12}))(?:\s{0,9}[:|](?!\d)|\s{1,9}\[|\t|,\s)")
_JUST_BEFORE = Regex(r"[\[(]\s{0,9}(\d{1,12})\s{0,9}[\])][\s:,-]{0,4}$")
_OPENS = Regex(r"\s{0,4}\[\s{0,9}\d")
_PHASES = ("train", "test", "val", "valid", "validation", "training", "eval")
_SPAN = 200
"""Characters after an epoch in which its step may stand."""


def count(line: str, found: Sequence[Token], metrics: int = 0) -> Count:
    """Return where a line stands; `found` are its tokens, `metrics` is where its metrics begin."""
    step, rank, epoch, epoch_end = None, 99, None, -1
    for token in found:
        what = sort(token.name)
        if what is Sort.EPOCH and epoch is None and not token.is_percent:
            epoch = _epoch(token.text)
            epoch_end = token.end
        elif what is Sort.STEP and (order := step_rank(token.name)) < rank:
            value = _whole(token)
            if value is not None:
                step, rank = value, order
        elif epoch is None and token.end < metrics and _is_timm(line, token):
            epoch, epoch_end = _epoch(token.text), token.end
    if step is None:
        step, other = _bare(line, found, epoch_end, metrics)
        epoch = epoch if other is None else other
    return Count(step, epoch)


def _is_timm(line: str, token: Token) -> bool:
    """Tell whether a token is an epoch of timm: `Train: 3 [ 0/1251]`."""
    return token.name.lower() in _PHASES and bool(_OPENS.match(line, token.end))


def _bare(
    line: str, found: Sequence[Token], epoch_end: int, metrics: int
) -> tuple[int | None, float | None]:
    """Return a step that has no name, and an epoch that has none either."""
    if epoch_end >= 0:
        at = epoch_end
        if match := _AFTER_EPOCH.match(line, at):
            return _small(match[1]), None
    else:
        at = 0
        if match := _BRACKETS.search(line):
            return _small(match[2]), float(match[1][:15])
    if "/" not in line:
        return _leading(line, metrics), None
    for match in _RATIO.finditer(line, at, at + _SPAN):
        if not any(token.start <= match.start() < token.end for token in found):
            return _small(match[1]), None
    return _leading(line, metrics), None


def _leading(line: str, metrics: int) -> int | None:
    """Return a step that stands alone at the start of a line, or just before its metrics."""
    if match := _FIRST.match(line):
        return _small(match[1] or match[2])
    if metrics and (match := _JUST_BEFORE.search(line, max(0, metrics - 24), metrics)):
        return _small(match[1])
    return None


def _small(text: str) -> int | None:
    return int(text) if len(text) < 19 else None


def _whole(token: Token) -> int | None:
    """Return a count such as 1,635 or 31K; None for a fraction, and beyond 64 bits."""
    try:
        value = number(token.text) * _SCALE[token.scale.lower()]
        exact = int(token.text.replace(",", "")[:20]) if not token.scale else round(value)
    except (ValueError, OverflowError):
        return None
    return exact if value == value and abs(exact) < 2**63 and value >= 0 else None


def _epoch(text: str) -> float | None:
    value = number(text)
    return value if 0 <= value < 1e9 else None
