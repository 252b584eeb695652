"""Where in the training a line stands: one grammar for epochs and steps.

`Epoch 3/10`, `Epoch: [3][40/500]`, `Epoch:[1/1](10/39695)`, `[3/10][40/500]`, `Iteration 254 |`,
`current_steps: 10`, `[Batch 1/2]`, `step:31K`, `40/500 loss`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dltools.probe.progress.base import Regex, number
from dltools.probe.progress.name_words import Sort, sort, step_rank
from dltools.probe.progress.shapes import Span
from dltools.probe.progress.tokens import Token


class Place(NamedTuple):
    """Where in a line its step and its epoch stand; the step counts in units of `scale`."""

    step: Span | None
    scale: int
    epoch: Span | None


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
_OPENING = Regex(r"\s{0,9}\[\s{0,9}(\d{1,15})\s{0,3}/\s{0,3}\d{1,15}\s{0,3}\]")
_FIRST = Regex(r"\s{0,9}(?:\[(\d{1,15})\]|(\d{1,15}))(?:\s{0,9}[:|](?!\d)|\s{1,9}\[|\t|,\s)")
_JUST_BEFORE = Regex(r"[\[(]\s{0,9}(\d{1,15})\s{0,9}[\])][\s:,-]{0,4}$")
_COLUMN = Regex(r"\s{1,9}(\d{1,15})\s*$")
_OPENS = Regex(r"\s{0,4}\[\s{0,9}\d")
_PHASES = ("train", "test", "val", "valid", "validation", "training", "eval")
_PARTS = ("rank", "Rank", "gpu", "GPU", "worker", "Worker", "node", "Node", "device", "Device")
_SPAN = 200
"""Characters after an epoch in which its step may stand."""


def place(line: str, found: Sequence[Token], metrics: int = 0) -> Place:
    """Return where the counters of a line stand; `found` are its tokens, `metrics` is where its
    metrics begin."""
    step, scale, rank, epoch, epoch_end = None, 1, 99, None, -1
    is_size = False
    for token in found:
        what = sort(token.name)
        if what is Sort.EPOCH and epoch is None and not token.is_percent:
            epoch, epoch_end = token.value, token.end
        elif what is Sort.STEP and (order := step_rank(token.name)) < rank:
            if token.name.lower() == "steps" and (epoch is not None or step is not None):
                continue  # how many an epoch or an episode has
            if "." not in token.text or token.scale:
                step, scale, rank = token.value, _SCALE[token.scale.lower()], order
                is_size = token.name.lower() == "batch" and 0 < metrics < token.start
        elif epoch is None and token.end < metrics and _is_timm(line, token):
            epoch, epoch_end = token.value, token.end
    if is_size and epoch is None and (match := _OPENING.match(line)):
        step = match.span(1)  # `[40/500] loss 0.5 | batch 16`
    if step is None:
        step, other = _bare(line, found, epoch_end, metrics)
        epoch = epoch or other
    return Place(step, scale, epoch)


def count(step: str | None, scale: int, epoch: str | None) -> Count:
    """Return where a line stands, from the counters as printed."""
    return Count(
        None if step is None else _whole(step, scale), None if epoch is None else _epoch(epoch)
    )


def _is_timm(line: str, token: Token) -> bool:
    """Tell whether a token is an epoch of timm: `Train: 3 [ 0/1251]`."""
    return token.name.lower() in _PHASES and bool(_OPENS.match(line, token.end))


def _bare(
    line: str, found: Sequence[Token], epoch_end: int, metrics: int
) -> tuple[Span | None, Span | None]:
    """Return a step that has no name, and an epoch that has none either."""
    if epoch_end >= 0:
        at = epoch_end
        if match := _AFTER_EPOCH.match(line, at):
            return match.span(1), None
    else:
        at = 0
        if match := _BRACKETS.search(line):
            return match.span(2), match.span(1)
    is_column = len(found) == 1 and not found[0].delimiter and "." in found[0].text
    if is_column and (match := _COLUMN.match(line, found[0].end)):  # `train_loss 0.52 300`
        return match.span(1), None
    if "/" not in line:
        return _leading(line, metrics), None
    for match in _RATIO.finditer(line, at, at + _SPAN):
        of = next((one for one in found if one.start <= match.start() < one.end), None)
        if of is None or (not of.delimiter and of.end < metrics and of.name not in _PARTS):
            return match.span(1), None
    return _leading(line, metrics), None


def _leading(line: str, metrics: int) -> Span | None:
    """Return a step that stands alone at the start of a line, or just before its metrics."""
    found: Span | None = None
    if match := _FIRST.match(line):
        found = match.span(1) if match[1] else match.span(2)
    elif metrics and (match := _JUST_BEFORE.search(line, max(0, metrics - 24), metrics)):
        found = match.span(1)
    return found


def _whole(text: str, scale: int) -> int | None:
    """Return a count such as 1,635 or 31K; None for one that is negative or beyond 64 bits."""
    try:
        exact = int(text.replace(",", "")[:20]) if scale == 1 else round(number(text) * scale)
    except (ValueError, OverflowError):
        return None
    return exact if 0 <= exact < 2**63 else None


def _epoch(text: str) -> float | None:
    value = number(text)
    return value if 0 <= value < 1e9 else None
