"""Finds the step and the epoch in a line; called by `named`.

`place` is one grammar for both: `Epoch 3/10`, `Epoch: [3][40/500]`, `Epoch:[1/1](10/39695)`,
`[3/10][40/500]`, `Iteration 254 |`, `current_steps: 10`, `[Batch 1/2]`, `step:31K`, `40/500 loss`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dltools.observations.metric_names import PHASES, normal_name
from dltools.probe.progress.base import Regex, number
from dltools.probe.progress.line_shapes import Span
from dltools.probe.progress.prefix import own_start
from dltools.probe.progress.tokens import NameKind, Token, name_kind, step_rank


class Place(NamedTuple):
    """The places of step and epoch in a line; the step counts in units of `scale`. `is_bar`: it is
    that of a bar, which has a `total`; `is_end`: of one of Keras that is full, `157/157 [====]`."""

    step: Span | None
    scale: int
    epoch: Span | None
    is_bar: bool = False
    is_end: bool = False
    total: Span | None = None


class Count(NamedTuple):
    """The step and the epoch in a line, each None if it has none."""

    step: int | None
    epoch: float | None

    def later(self, at: Count) -> Count:
        """Return later counters, with the epoch of these if they have none."""
        return at if at.epoch is not None else Count(at.step, self.epoch)


NO_COUNT = Count(None, None)

LOOK_BACK = 48
"""Characters before a name in which words that belong to it may stand."""

_SHORT = 19
"""Digits of a number that may not fit into 64 bits."""

_SCALE = {"": 1, "k": 1_000, "m": 1_000_000, "g": 10**9, "b": 10**9}

_BRACKETS = Regex(
    r"\[\s{0,9}(\d++)(?:\s{0,3}/\s{0,3}\d++)?\s{0,3}\][\s,-]{0,3}\[\s{0,9}(\d++)\s{0,3}/\s{0,3}\d++"
    r"|^\s{0,9}[\[(](\d++),\s{1,9}(\d++)[\])]"
)

_RATIO = Regex(
    r"(?:(?<=[\s\[(|])(?<!%\()(?<!% \()|^)(\d++)\s{0,3}/\s{0,9}(?:\d++|\?|Unknown)(?=[\s\])|,:;]|$)"
    r"(?!\s\d\d:\d\d|, \d{1,9} ins\b)(?!\s{0,3}(?:MB|GB|MiB|GiB|W\b|KB))"
)

_OPENING = Regex(r"\s{0,9}\[\s{0,9}(\d{1,15})\s{0,3}/\s{0,3}\d{1,15}\s{0,3}\]")
_FIRST = Regex(
    r"\s{0,9}(?:\[\s{0,9}(\d{1,15})\](?:(?=\s{1,9}[A-Za-z])|\s{0,9}[:|](?!\d)|\s{1,9}\[|\t|,\s)"
    r"|<?(\d{1,15})(?:\s{0,9}[:|](?!\d)|\s{1,9}\[|\t|[,.)>]\s|\s-\s|\s(?=\d{1,9}\.\d\d m?s )))"
)
_JUST_BEFORE = Regex(r"[\[(]\s{0,9}(\d{1,15})\s{0,9}[\])][\s:,|-]{0,4}$|^\W{0,9}(\d{1,15})\s{1,9}$")
_COLUMN = Regex(r"\s{1,9}(\d{1,15})\s*$")
_OPENS = Regex(r"\s{0,4}(?:\(\s{0,3}\d{1,3}%\)\s{0,4})?\[\s{0,9}\d|,\s")
_AT_STEPS = Regex(
    r"(?:@|\bat|\bafter) ?(\d{1,15}) ?(?:steps|iterations|iters|updates)\b"
    r"|\beval ?@ ?(\d[\d,]{0,18})\]"
    r"|^\s{0,9}\[\s{0,9}(\d{1,15}) (?:eps|episodes|steps|iters|iterations)\]"
    r"|^\s{0,9}(\d{1,15})/\d{1,15} \(epoch\b"
    r"|\b(?:step|iter|iteration|round|episode)[-_\[](\d{1,15})\b"
    r"|\b(?:\d{1,15}-)?(\d{1,15})batch\b|\((\d{1,15}), [-+.e\d]{1,30}, \{'",
    re.IGNORECASE,
)
INDEX = Regex(
    r"(?:\b[Ee]p(?:och)?(?:\[ ?|-|\] | (?=\d{1,9}-[a-z]))?|@[Ee]poch |\[E)(\d{1,15})\b"
    r"|(?<![\w/])(\d{1,15}) ?epoch\b"
)
"""An epoch whose number stands right beside its word: `Epoch[2]`, `3epoch`."""

_RANGE = Regex(r"-(\d{1,15})\]")
_BAR_FORM = Regex(
    r"(?<![\w.])(\d{1,15}(?:\.\d{1,9})?)([kKMG]?)(?:/(?:[\d.]{1,15}[kKMG]?|\?))?[a-zA-Z]{0,9}\s{0,2}"
    r"(?:\[[\d:]{4,12}(?:<[^,\]]{0,20})?,[^,\]]{0,30}/[^,\]]{1,20}(?:,|\])|\d:\d\d:\d\d \u2022 )"
    r"|^\s{0,9}(?:\[={0,80} )?(\d{1,15})/(?:\d{1,15}|Unknown) "
    r"(?:[\[=>.]{1,80}\]|[\u2501\u2500\u2578\u257a]{3})"
)
"""What tqdm shows: how many, of how many, the time spent and left, and the rate; what Rich does;
and a bar of Keras, or like it."""

OF_EVALUATION = Regex(
    r"\s*(?:Test|Val(?:id(?:ation)?)?|Eval): ?\[\s*(\d+)/(\d+)(?: \(\s*\d+%\))?\]"
)
"""How timm counts the batches of an evaluation: `Test: [ 5/5]`."""

_TOTAL = Regex(r"[kKMG]?/(\d{1,15})")

_OF_BAR = Regex(
    r"^\s{0,9}\[\s{0,9}(\d{1,15})\s{0,3}/\s{0,3}\d{1,15}\s{0,3}\]"
    r"|(?:^|\s)(\d{1,15})/\d{1,15}:?\s{1,9}\d{1,3}%\|"
)
"""An epoch that has no name before a bar of its steps."""

_BESIDE_BARS = tuple(map(step_rank, ("global_step", "step", "env_step")))
"""Counters that go on where a bar begins anew."""

_TRIAL, _ITERATION = step_rank("trial"), step_rank("iter")
_OF_EPISODE = Regex(
    r".*(?:rew|ret|score|eps|steps|frame|len|win|success|fitness|[ _]r$)", re.IGNORECASE
)
"""Names of what an episode achieves, and how."""

_NUMBERS = frozenset({"i", "index", "idx", "number", "num", "no"})
_PARTS = ("rank", "Rank", "gpu", "GPU", "worker", "Worker", "node", "Node", "device", "Device")

_LETTERS = ("i", "t", "T")
"""Names of a step that has a total behind it."""

_SPAN = 200
"""Characters after an epoch in which its step may stand."""


def place(line: str, tokens: Sequence[Token], metrics: int = 0) -> Place:
    """Return where the counters of a line stand; `tokens` are its tokens, `metrics` is where its
    metrics begin."""
    if match := OF_EVALUATION.match(line):
        return Place(match.span(1), 1, None, is_bar=True, total=match.span(2))
    step, scale, rank, epoch, epoch_end = None, 1, 99, None, -1
    is_size = False
    for token in tokens:
        name = counter_of(line, token)
        what = name_kind(name)
        if what is NameKind.EPOCH and epoch is None and not token.is_percent:
            epoch, epoch_end = token.value, token.end
        elif what is NameKind.STEP and (order := step_rank(name)) < rank:
            if token.name.lower() in ("steps", "iterations") and (
                step is not None or _is_about(line, epoch_end, token, metrics)
            ):
                continue  # how many an epoch or an episode has
            if rank == _ITERATION and step and not line[step[1] : token.start].strip():
                continue  # `iter 76 step 38`: of the optimiser
            begin = token.value[0]
            text = token.text.removesuffix(".")  # of a sentence
            if ("." not in text or token.scale) and not token.is_percent:
                step, scale = (begin, begin + len(text)), _SCALE[token.scale.lower()]
                rank = order
                is_size = token.name.lower() == "batch" and 0 < metrics < token.start
        elif epoch is None and token.end < metrics and _is_timm(line, token):
            epoch, epoch_end = token.value, token.end
    if is_size and epoch is None and (match := _OPENING.match(line)):
        step = match.span(1)  # `[40/500] loss 0.5 | batch 16`
    if epoch is None and (epoch := _short_epoch(tokens)) == step:
        step = None
    if epoch is None and (match := INDEX.search(line)):
        epoch, epoch_end = match.span(match.lastindex), match.end()  # `Epoch[2] Batch [20-40]`
    if step is not None and (match := _RANGE.match(line, step[1])):
        step = match.span(1)
    if epoch is not None and rank == _TRIAL:
        step = None  # of the search, not of the training
    if step is None and (match := _AT_STEPS.search(line)):
        step = match.span(match.lastindex)
    if step is None:
        step, other = _bare(line, tokens, epoch_end, metrics)
        epoch = epoch or other
    found = Place(None if step == epoch else step, scale, epoch)
    bar = bar_in(line)
    return _of_bar(bar, line, found, metrics, goes_on=rank in _BESIDE_BARS) if bar else found


def _of_bar(bar: re.Match[str], line: str, found: Place, metrics: int, *, goes_on: bool) -> Place:
    """Return where the counters of a line with a bar stand. The step is the bar's, unless the line
    has one that `goes_on` where a bar begins anew."""
    step, scale, epoch = found.step, found.scale, found.epoch
    if bar[3]:
        step, scale = bar.span(3), 1
    elif not goes_on:
        step, scale = bar.span(1), _SCALE[bar[2].lower()]
    if epoch and epoch[0] > bar.end() > metrics:
        epoch = None
    elif not epoch and (match := _OF_BAR.search(line, 0, bar.start())):
        epoch = match.span(match.lastindex)  # `[3/40] loss 0.5: 100%|...| 50/50 [...]`
    return Place(step, scale, epoch, True, bar[0].endswith("=]"), total_of(bar, line))


def total_of(bar: re.Match[str], line: str) -> Span | None:
    """Return where the total of a bar stands."""
    match = _TOTAL.match(line, bar.end(3) if bar[3] else bar.end(1))
    return match.span(1) if match else None


def _short_epoch(tokens: Sequence[Token]) -> Span | None:
    """Return where an epoch stands that is said as `ep`, as an episode is beside what it achieves
    and how long it is."""
    of_episode = any(map(_OF_EPISODE.match, (token.name for token in tokens)))
    shorts = [token.value for token in tokens if token.name.lower() in ("ep", "ep.")]
    return shorts[0] if shorts and not of_episode else None


def bar_in(line: str) -> re.Match[str] | None:
    """Return the bar in a line, None if it has none."""
    match: re.Match[str] | None = _BAR_FORM.search(line) if "/" in line else None
    return match


def _is_about(line: str, epoch_end: int, token: Token, metrics: int) -> bool:
    """Tell whether steps are those of an epoch: they stand just behind it, or behind the metrics.
    Between others they are those of the training, `epoch: 2, lr: 0.5, steps: 3594, ...`."""
    is_next = not any(map(str.isalnum, line[epoch_end : token.start]))
    return epoch_end >= 0 and (is_next or 0 < metrics < token.start)


def counter_of(line: str, token: Token) -> str:
    """Return the name of a token, with the word before it if that is `global`, or that word alone
    if the name only says that it is a number: `iteration index: 100`."""
    before = line[max(0, token.start - LOOK_BACK) : token.start].split()[-1:]
    if token.name.lower() in _NUMBERS:
        return "".join(before)
    return f"global_{token.name}" if before == ["global"] else token.name


def count(step: str | None, scale: int, epoch: str | None) -> Count:
    """Return the step and the epoch, from the counters as printed."""
    if epoch is not None:
        return Count(None if step is None else _whole(step, scale), _epoch(epoch))
    return NO_COUNT if step is None else Count(_whole(step, scale), None)


def _is_timm(line: str, token: Token) -> bool:
    """Tell whether a token is an epoch of timm: `Train: 3 [ 0/1251]`."""
    return normal_name(token.name) in PHASES and bool(_OPENS.match(line, token.end))


def _bare(
    line: str, tokens: Sequence[Token], epoch_end: int, metrics: int
) -> tuple[Span | None, Span | None]:
    """Return a step that has no name, and an epoch that has none either."""
    at = max(0, epoch_end)
    if epoch_end < 0 and (match := _BRACKETS.search(line)):
        return match.span(match.lastindex or 0), match.span((match.lastindex or 0) - 1)
    is_column = len(tokens) == 1 and not tokens[0].delimiter and "." in tokens[0].text
    if is_column and (match := _COLUMN.match(line, tokens[0].end)):  # `train_loss 0.52 300`
        return match.span(1), None
    if "/" not in line:
        return _leading(line, metrics), None
    for match in _RATIO.finditer(line, at, at + _SPAN):
        of = next((token for token in tokens if token.start <= match.start() < token.end), None)
        is_bare = of and not of.delimiter and of.end < metrics and of.name not in _PARTS
        if of is None or is_bare or of.name in _LETTERS:
            return match.span(1), None
    return _leading(line, metrics), None


def _leading(line: str, metrics: int) -> Span | None:
    """Return a step that stands alone at the start of a line, or just before its metrics."""
    match = _FIRST.match(line, own_start(line))
    if not match and metrics:
        match = _JUST_BEFORE.search(line, max(0, metrics - 24), metrics)
    return match.span(match.lastindex) if match else None


def _whole(text: str, scale: int) -> int | None:
    """Return a count such as 1,635 or 31K; None for one that is negative or beyond 64 bits."""
    if scale == 1 and len(text) < _SHORT and text.isdecimal():
        return int(text)
    try:
        exact = int(text.replace(",", "")[:20]) if scale == 1 else round(number(text) * scale)
    except (ValueError, OverflowError):
        return None
    return exact if 0 <= exact < 2**63 else None


def _epoch(text: str) -> float | None:
    value = number(text)
    return value if 0 <= value < 1e9 else None
