"""Finds which tokens of a line are metrics, counters and phases; called by `named`.

`candidates` says which names are a metric's. `place` is one grammar
for epochs and steps: `Epoch 3/10`, `Epoch: [3][40/500]`, `Epoch:[1/1](10/39695)`,
`[3/10][40/500]`, `Iteration 254 |`, `current_steps: 10`, `[Batch 1/2]`, `step:31K`, `40/500 loss`.
`phase_words` finds training, validation or test elsewhere than in a metric's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dltools.observations.metric_names import is_metric, normal_name
from dltools.probe.progress.base import PLAIN_NUMBER, Regex, number
from dltools.probe.progress.shapes import Span
from dltools.probe.progress.tokens import NameKind, Token, name_kind, step_rank

_STOP = frozenset({
    "info", "warning", "debug", "the", "a", "an", "this", "with", "and", "at", "for", "in", "on",
    "of", "is", "was", "epoch", "step", "iter", "iteration", "batch", "end", "final", "finished",
    "done", "got", "current", "currently", "now", "new", "after", "before", "our", "my", "had",
    "has", "root", "to", "from", "running", "overall", "model", "per", "or", "by", "using", "set",
    "time", "s", "ms", "it", "steps", "iterations", "iters", "updates", "am", "pm", "db",
})  # fmt: skip

_ACHIEVED = ("fitness", "score", "scores", "return", "returns", "cost")
_MOST_WORDS = 3
_LOOK_BACK = 48
_DROPPED = ("average", "avg", "mean", "averaged")
_WINDOW = Regex(r" ?\((?:last|over|mean|avg|average|running|moving|smoothed|higher|lower)\b[^)]*\)")
_KINDS = ("batch", "epoch", "step", "iter", "iteration")

_UNIT = Regex(
    r"\s?(?:[mun\u00b5]?s|secs?|seconds|minutes|hours|[KMGT]i?B|[kMG]?Hz|[A-Za-z]{1,20}/s(?:ec)?)(?![\w/])"
)

_ONE_OF = Regex(r"\b(?:class|category|label) [#\[]?\d{1,6}\]?:? $", re.IGNORECASE)

_BEST = Regex(r"(?:(?<![\w.-])best(?!\w)|\u6700[\u4f18\u4f73])\s?([^|;)\]]*)", re.IGNORECASE)
"""The best value so far, in English or Chinese, and the text about it."""

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
    for token in tokens:
        what = name_kind(token.name)
        if what is NameKind.OTHER and _is_of_trainer(line, token):
            what = NameKind.BESIDE
        name, start = (token.name, token.start)
        if what >= NameKind.BESIDE or token.delimiter:
            name, start = _full_name(line, token, left)
            name = _WINDOW.sub("", name) if "(" in name else name
            if name != token.name:
                what = name_kind(name) if what < NameKind.BESIDE else max(what, name_kind(name))
        if what >= NameKind.BESIDE:
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
        or _ONE_OF.search(line, max(0, start - _LOOK_BACK), start)
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
    is_share = token.total and "." not in token.text and "acc" not in name.lower()
    is_fraction = "." in token.text or (token.is_percent and token.delimiter not in ("", ","))
    is_usual = what is NameKind.WEAK and not is_fraction
    is_loose = not token.delimiter and what is NameKind.BESIDE
    is_packet = token.is_percent and "loss" in name.lower()
    return not (is_setting or token.scale or is_share or is_loose or is_usual or is_packet)


def _is_counted(token: Token, name: str, tokens: Sequence[Token]) -> bool:
    """Tell whether a usual word is what somebody achieved in a step that the line names."""
    is_named = token.delimiter in (":", "=") and normal_name(name).endswith(_ACHIEVED)
    counters = [one.name.lower() for one in tokens if name_kind(one.name) is NameKind.STEP]
    return is_named and not {"", *counters} <= {"", "round", "game"}


def _full_name(line: str, token: Token, left: int) -> tuple[str, int]:
    """Return a token's name with the words before it that belong to it, and where it begins."""
    begin = max(left, token.start - _LOOK_BACK)
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
        if word.endswith(("/s", "/sec")) or _INDEX.fullmatch(word):
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


class Place(NamedTuple):
    """The places of step and epoch in a line; the step counts in units of `scale`. `is_bar`: it is
    that of a bar."""

    step: Span | None
    scale: int
    epoch: Span | None
    is_bar: bool = False


class Count(NamedTuple):
    """The step and the epoch in a line, each None if it has none."""

    step: int | None
    epoch: float | None

    def later(self, at: Count) -> Count:
        """Return later counters, with the epoch of these if they have none."""
        return at if at.epoch is not None else Count(at.step, self.epoch)


NO_COUNT = Count(None, None)
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
_LOGGER = Regex(
    r"(?:\b(?:INFO|DEBUG|WARNING)\b(?::[\w.-]{1,60}:|[\]:]?\s{1,9}(?:\[[\w.]+:\d+[^\]]{0,20}\]\s)?)"
    r"|(?:\w\.(?:cpp|cc|py):\d+\]|\d:\d\d[^\]\s]{0,9}(?: \d{4})? ?\])\s)+"
)
"""What a logger puts before what the program says."""

_JUST_BEFORE = Regex(r"[\[(]\s{0,9}(\d{1,15})\s{0,9}[\])][\s:,|-]{0,4}$|^\W{0,9}(\d{1,15})\s{1,9}$")
_COLUMN = Regex(r"\s{1,9}(\d{1,15})\s*$")
_OPENS = Regex(r"\s{0,4}(?:\(\s{0,3}\d{1,3}%\)\s{0,4})?\[\s{0,9}\d|,\s")
_AT_STEPS = Regex(
    r"(?:@|\bat|\bafter) ?(\d{1,15}) ?(?:steps|iterations|iters|updates)\b"
    r"|^\s{0,9}(\d{1,15})/\d{1,15} \(epoch\b"
    r"|\b(?:step|iter|iteration|round|episode)[-_](\d{1,15})\b"
    r"|\b(?:\d{1,15}-)?(\d{1,15})batch\b|\((\d{1,15}), [-+.e\d]{1,30}, \{'",
    re.IGNORECASE,
)
_INDEX = Regex(r"(?:\b[Ee]p(?:och)?[\[-]?|@[Ee]poch )(\d{1,15})\b|(?<![\w/])(\d{1,15})epoch\b")
_RANGE = Regex(r"-(\d{1,15})\]")
_BAR_FORM = Regex(
    r"(?<![\w.])(\d{1,15}(?:\.\d{1,9})?)([kKMG]?)(?:/(?:[\d.]{1,15}[kKMG]?|\?))?[a-zA-Z]{0,9}\s{0,2}"
    r"\[[\d:]{4,12}(?:<[^,\]]{0,20})?,[^,\]]{0,30}/[^,\]]{1,20}(?:,|\])"
    r"|^\s{0,9}(\d{1,15})/(?:\d{1,15}|Unknown) (?:\[[=>.]{1,80}\]|[\u2501\u2500\u2578\u257a]{3})"
)
"""What tqdm shows: how many, of how many, the time spent and left, and the rate; and a bar of
Keras."""

_BESIDE_BARS = tuple(map(step_rank, ("global_step", "step", "env_step")))
"""Counters that go on where a bar begins anew."""

_TRIAL = step_rank("trial")
_OF_EPISODE = Regex(
    r".*(?:rew|ret|score|eps|step|frame|len|win|success|fitness|[ _]r$)", re.IGNORECASE
)
"""Names of what an episode achieves, and how."""

_NUMBERS = frozenset({"index", "idx", "number", "num", "no"})
_PARTS = ("rank", "Rank", "gpu", "GPU", "worker", "Worker", "node", "Node", "device", "Device")

_LOOKED_AT = 100
"""Characters at the start of a line in which a logger's may stand."""

_SPAN = 200
"""Characters after an epoch in which its step may stand."""


def own_start(line: str) -> int:
    """Return where a program's own text begins in a line, behind what a logger puts before it."""
    match = _LOGGER.search(line[:_LOOKED_AT])
    return match.end() if match else 0


def place(line: str, tokens: Sequence[Token], metrics: int = 0) -> Place:
    """Return where the counters of a line stand; `tokens` are its tokens, `metrics` is where its
    metrics begin."""
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
    if epoch is None and (match := _INDEX.search(line)):
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
    if step == epoch:
        step = None
    bar = bar_in(line)
    if bar and bar[3]:
        step, scale = bar.span(3), 1
    elif bar and rank not in _BESIDE_BARS:
        step, scale = bar.span(1), _SCALE[bar[2].lower()]
    if bar and epoch and epoch[0] > bar.end() > metrics:
        epoch = None
    elif bar and not epoch and (match := _OPENING.match(line)) and match.end() < bar.start():
        epoch = match.span(1)  # `[3/40] loss 0.5: 100%|...| 50/50 [...]`
    return Place(step, scale, epoch, bool(bar))


def _short_epoch(tokens: Sequence[Token]) -> Span | None:
    """Return where an epoch stands that is said as `ep`, as an episode is beside what it achieves
    and how long it is."""
    of_episode = any(map(_OF_EPISODE.match, (one.name for one in tokens)))
    shorts = [one.value for one in tokens if one.name.lower() in ("ep", "ep.")]
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
    """Return the name of a token, or the word before it if the name only says that it is a number:
    `iteration index: 100`."""
    if token.name.lower() in _NUMBERS:
        words = line[max(0, token.start - _LOOK_BACK) : token.start].split()
        return words[-1] if words else ""
    return token.name


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
        if of is None or is_bare or of.name == "i":
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


PHASES = ("train", "val", "eval", "test")

_WORDS = Regex(
    r"(?<![\w./@=-])(?<![\w.:]\\)(train(?:ing)?|val(?:i(?:d(?:ation|ating|ate)?)?)?|eval(?:uation|uating|uate)?"
    r"|test(?:ing)?|(?<!std )dev|CV(?= )|Saving dict(?= for))(?: set)?"
    r"(?![\w/@]|\.\S|-\w| ?=(?!\s?[{[(]|(?-i:[a-z]))|\(s\)|\s(?:time|samples|size|batch_size)\b)",
    re.IGNORECASE,
)

_MEANS = {"c": "val", "d": "val", "v": "val", "e": "eval", "s": "eval", "t": "test"}


class PhaseWord(NamedTuple):
    """A phase, and where its word begins."""

    phase: str
    start: int


def phase_words(line: str, lower: str) -> list[PhaseWord]:
    """Return the words of a line that name a phase, in order."""
    is_result = "* " in lower and lower[own_start(line) :].lstrip()[:2] == "* "
    means = [PhaseWord("val", 0)] if is_result else []
    return [*means, *(PhaseWord(_phase(m[1]), m.start()) for m in _WORDS.finditer(line))]


def phase_before(words: Sequence[PhaseWord], at: int) -> str:
    """Return the phase nearest on the left of a place in the line, "" for none; of what an
    evaluation is says more than that it is one: `Dev accuracy: evaluation - loss 0.5`."""
    before = [word.phase for word in words if word.start < at]
    if before[-2:] in (["val", "eval"], ["test", "eval"]):
        return before[-2]
    return before[-1] if before else ""


def _phase(word: str) -> str:
    lower = word.lower()
    return "train" if lower.startswith("train") else _MEANS[lower[0]]
