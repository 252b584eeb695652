"""Which of a job's metrics judges it, and what it is: a reward, a loss of an evaluation, a norm."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dltools.observations.metric_names import PHASES, STATISTICS, has_direction

_QUANTILE = re.compile(r"_p\d{2,3}(?:_|$)")
_SPREADS = frozenset({"std", "stddev", "stdev", "var", "variance"})
_EXTREMES = frozenset({"min", "max", "minimum", "maximum"})
_PLAIN = frozenset({*PHASES, "total", "tot", "loss", "mel"})
_TOTALS = frozenset({"total", "tot"})
_WHOLES = _PLAIN | STATISTICS | {"epoch", "overall", "batch", "step"}
"""Words of a loss that is no part of another; of a spectrogram (mel) among those of a GAN."""

_ACHIEVED = frozenset({"reward", "rewards", "rew", "rewmean", "eprewmean", "return", "returns",
                       "success", "win", "winrate"})  # fmt: skip
_WHOLE_REWARDS = frozenset({
    *PHASES, *STATISTICS, *_EXTREMES, *_ACHIEVED, "critic", "cumulative", "ema", "env", "ep",
    "episode", "episodes", "episodic", "evaluation", "final", "game", "objective", "rate", "rlhf",
    "rollout", "running", "score", "scores", "total",
})  # fmt: skip
"""Words of a reward that is no part of another, as `rew_tracking_lin_vel` is."""

_OF_PAIRS = frozenset({"chosen", "rejected", "margin", "margins", "accuracy", "accuracies"})
_ABOUT_SCORES = frozenset({
    "actor", "avg", "average", "best", "critic", "episode", "episodic", "eval", "game", "mean",
    "median", "max", "min", "rollout", "score", "scores", "test", "train", "val",
})  # fmt: skip


Rank = tuple[int, int, int, int, str]
"""A sort key of metrics, the best evaluation metric first."""


@functools.lru_cache(maxsize=4096)
def evaluation_rank(name: str) -> Rank:
    """Return a sort key that puts the best evaluation metric first.

    The order is: what an agent achieves, by which reinforcement learning is judged, that of an
    evaluation first, and a score before a reward or rate of success, and these before a return;
    validation losses and what a task is measured by, other validation metrics, parts of a
    detector's, the training loss, other losses, other metrics, norms of gradients and spreads, and
    the losses of discriminators and critics. Within each of these a mean comes before an extreme
    (but the best fitness of a generation before the mean), a whole loss or reward before a part of
    one, an average precision before one at 50 %, a precision or a recall, and a validation before
    an evaluation and a test, then by name.
    """
    lower = name.lower()
    words = lower.split("_")
    extreme = 0 if _EXTREMES.isdisjoint(words) else 2
    extreme = -1 if words == ["best", "fitness"] else extreme
    group = _group(lower, frozenset(words))
    whole = _WHOLE_REWARDS if group <= 1 else _PLAIN
    is_whole = whole.issuperset(words) or (group > 1 and not _TOTALS.isdisjoint(words))
    part = 1 if ("loss" in words or group <= 1) and not is_whole else 0
    part = part or (1 if _AT_ONE.search(lower) or "box" in words else 0)
    achieved = _achieved(frozenset(words)) if group <= 1 else 0
    return group, achieved, extreme + part, _LATER.get(words[0], 0), name


_LATER = {"eval": 1, "test": 2}
_AT_ONE = re.compile(r"ap_?(?:50|75)$|precision$|recall$|bleu_?[1-3]$")


def _achieved(words: frozenset[str]) -> int:
    """Return how much a word for what an agent achieves says, 0 most."""
    if words & {"score", "scores"} and "non" not in words:
        return 0
    return (2 if words & {"return", "returns"} else 1) + 2 * bool(words & _NORMALISED)


_NORMALISED = frozenset({"normalized", "normalised", "norm", "scaled"})
_OF_TASKS = frozenset({
    "bleu", "cer", "dice", "hitrate", "hr", "map", "miou", "mrr", "ndcg", "psnr", "sacrebleu",
    "sdr", "wer",
})  # fmt: skip
"""Words of what a task is measured by, by evaluations alone."""

_OF_DETECTIONS = frozenset({"bbox", "box", "cls", "dfl", "kpt", "mask", "obj", "pose", "rpn"})
"""Words of parts of a detector's loss, which its evaluation does not report as a whole."""


class Seen(NamedTuple):
    """What there has been of a metric."""

    peak: float
    """Its largest absolute value, of the finite ones."""

    points: int
    """How many points have a finite value."""

    is_constant: bool = False
    """Whether all these are the same."""


@dataclass(slots=True)
class Values:
    """The values of a metric, of which none is kept but the newest."""

    last: float = math.nan
    """The newest, NaN before there is one."""

    count: int = 0
    """How many there were."""

    finite: int = 0
    """How many of them were finite."""

    lost: int = 0
    """How many of the newest, one after the other, are not finite."""

    low: float = math.inf
    """The least finite one, infinity before there is one."""

    high: float = -math.inf
    """The largest finite one, -infinity before there is one."""

    def add(self, value: float) -> None:
        """Add a value."""
        self.last, self.count = value, self.count + 1
        if not math.isfinite(value):
            self.lost += 1
            return
        self.finite, self.lost = self.finite + 1, 0
        self.low, self.high = min(self.low, value), max(self.high, value)

    @property
    def seen(self) -> Seen:
        """What there has been of the metric."""
        peak = max(-self.low, self.high, 0.0)
        return Seen(peak, self.finite, self.low == self.high)


def seen(values: Iterable[float]) -> Seen:
    """Return what there has been of a metric with these values."""
    tally = Values()
    for value in values:
        tally.add(value)
    return tally.seen


def evaluation_order(seen: Mapping[str, Seen]) -> list[str]:
    """Return the names of a job's metrics, the best evaluation metric first.

    Of two that count alike the one comes first that is first in `seen`, as a job prints it first.
    A metric that has never been a finite number comes last: `val_accuracy` NaN from the first line.
    So does a loss that has never been other than 0, as some policy gradients have none to print.
    A result that came once comes after the others where one of these is a loss or better, and came
    often: `loss` at each step, and a `val_loss` at the end. One that is no loss does so where the
    training loss came twice. So does one that came often and never
    changed, where another has. A part of a loss, `val_loss_ctc` beside `val_loss`, comes after the
    whole, and an evaluation's metric of which nothing tells whether it is to rise after the
    training loss. Beside the losses of an adversarial pair, what measures samples
    comes first: `fid`, `inception_score`. Of metrics of one kind, one that came a tenth as often as
    another comes after it.
    """
    series = {
        name: metric
        for name, metric in seen.items()
        if metric.points >= OFTEN and _group_of(name) <= _LOSS and not _is_empty(name, metric.peak)
    }
    has_change = not all(metric.is_constant for metric in series.values())
    has_pair = is_adversarial(name for name, metric in seen.items() if metric.points)
    most: dict[int, int] = {}
    for name, metric in seen.items():
        most[_group_of(name)] = max(metric.points, most.get(_group_of(name), 0))

    has_loss = most.get(_TRAINING_LOSS, 0) > 1
    losses = tuple(f"{name}_" for name in seen if name.endswith("loss"))

    def key(name: str) -> tuple[bool, bool, bool, bool, int, bool, bool, tuple[object, ...]]:
        peak, points, is_constant = seen[name]
        rank = evaluation_rank(name)
        is_later = f"val_{name}" in seen or (has_loss and not has_direction(name))
        is_later &= rank[0] == _OTHER_EVALUATION
        group = _TRAINING_LOSS + 2 if is_later else rank[0]
        is_still = has_change and is_constant and points >= OFTEN
        is_score = rank[0] in (_EVALUATION, _OTHER_EVALUATION) and not is_loss(name)
        may_wait = bool(series) or (is_score and has_loss)
        is_once = (may_wait and points == 1) or is_still
        is_second = has_pair and not _measures_samples(name)
        is_rare = points * _RARE <= most[rank[0]]
        is_worse = points == 0, _is_empty(name, peak), is_once, is_second
        return *is_worse, group, name.startswith(losses), is_rare, rank[:-1]

    return sorted(seen, key=key)


def is_adversarial(names: Iterable[str]) -> bool:
    """Tell whether the losses of a generator and of its discriminator are among these metrics."""
    return {_GENERATOR, _DISCRIMINATOR} <= {_player_of(name) for name in names}


def fluctuating(names: Iterable[str]) -> frozenset[str]:
    """Return those of a job's metrics that fluctuate however well it learns, and stand still while
    it does (ours).

    These are what an agent achieves, and all losses of a job with an adversarial pair: in balance,
    neither player gets the better of the other (Goodfellow et al., NIPS 2014).
    """
    metrics = list(names)
    has_pair = is_adversarial(metrics)
    return frozenset(name for name in metrics
                     if is_achieved(name) or (has_pair and is_loss(name)))  # fmt: skip


def is_loss(name: str) -> bool:
    """Tell whether a metric is a loss, of an evaluation or of a part too."""
    is_named = "loss" in name.lower() or name.startswith("l_") or name in _COSTS
    return is_named or bool(_player_of(name))


def is_achieved(name: str) -> bool:
    """Tell whether a metric says what somebody achieved, in a game as well as in a training: a
    reward, a score, a rate of success."""
    return _group_of(name) <= 1


def is_whole_loss(name: str) -> bool:
    """Tell whether a metric is the whole loss of a training or an evaluation, and not another
    thing's: `val_loss`, but not `packet_loss`."""
    words = frozenset(name.lower().split("_"))
    return "loss" in words and words <= _WHOLES


def is_training_loss(name: str) -> bool:
    """Tell whether a metric is the whole loss that a training minimises."""
    return _group_of(name) == _TRAINING_LOSS


_COSTS = ("cost", "train_cost")
_GENERATOR, _DISCRIMINATOR = "generator", "discriminator"
_PLAYERS = (
    (_GENERATOR, frozenset({"g", "gen", "generator", "netg"}), frozenset({"gloss", "lossg",
     "errg"})),
    (_DISCRIMINATOR, frozenset({"d", "dis", "disc", "dsc", "discriminator", "netd", "critic"}),
     frozenset({"dloss", "lossd", "errd"})),
)  # fmt: skip
"""Who plays against whom: words that name a player beside `loss`, and words that say both."""

_SAMPLES = frozenset({"fid", "kid", "inception", "is"})
"""Words of measures of generated samples."""


@functools.lru_cache(maxsize=4096)
def _player_of(name: str) -> str:
    """Return which player of an adversarial pair a metric is the loss of, "" where of none."""
    words = frozenset(name.lower().split("_"))
    for player, alone, joined in _PLAYERS:
        if words & joined or (words & alone and not words.isdisjoint(("loss", "error", "l"))):
            return player
    return ""


@functools.lru_cache(maxsize=4096)
def _measures_samples(name: str) -> bool:
    words = name.lower().split("_")
    return not _SAMPLES.isdisjoint(words) and _SPREADS.isdisjoint(words)


_RARE = 10
OFTEN = 3
"""Points of a metric that make a series, beside which a result that came once says less."""


def _is_empty(name: str, peak: float) -> bool:
    return peak == 0 and not is_achieved(name)


def _group_of(name: str) -> int:
    return evaluation_rank(name)[0]


def why_first(name: str) -> str:
    """Return what makes a metric the one to judge a job by, in a few words."""
    return _GROUPS[evaluation_rank(name)[0]]


_GROUPS = (
    "a reward or rate of success of an evaluation",
    "a reward or rate of success",
    "a loss or score of an evaluation",
    "another metric of an evaluation",
    "a part of the loss of an evaluation",
    "the training loss",
    "a loss",
    "a metric",
    "a norm or spread",
    "the loss of a discriminator or critic",
)


_EVALUATION = 2
_OTHER_EVALUATION = 3
_TRAINING_LOSS = 5
_LOSS = 6
"""The last group in `_GROUPS` of what a job can be judged by well."""


def _group(lower: str, words: frozenset[str]) -> int:
    """Return the place in `_GROUPS` of a metric."""
    is_evaluation = lower.startswith(("val_", "valid_", "eval_", "test_"))
    if "grad_norm" in lower or words & _SPREADS:
        return 8
    if _player_of(lower) == _DISCRIMINATOR:
        return 9
    if _is_achieved(words):
        return 0 if is_evaluation else 1
    if is_evaluation and (words & _OF_TASKS or {"m", "iou"} <= words):
        return 2
    if is_evaluation and any(word.endswith("loss") for word in words):
        return 4 if words & _OF_DETECTIONS else 2
    if is_evaluation or (words & (_OF_TASKS | {"auc"}) and "train" not in words):
        return 3
    if "loss" in words and words <= _WHOLES:
        return 5
    return 6 if is_loss(lower) or words <= {"perplexity", "train"} else 7


def _is_achieved(words: frozenset[str]) -> bool:
    """Tell whether a metric says what an agent achieved: a reward, a score, a rate of success.

    The rewards of chosen and rejected answers say how a preference model is trained, not this.
    """
    if words & _OF_PAIRS or any("loss" in word for word in words):
        return False
    return bool(words & _ACHIEVED) or ("score" in words and words <= _ABOUT_SCORES)


def latencies(names: Iterable[str]) -> list[str]:
    """Return the names of response times, the one to judge by first.

    `latency_seconds` is first, then the others by name: one without a quantile before `p95`.
    """
    times = (name for name in names if name.startswith("latency"))
    return sorted(
        times,
        key=lambda name: (
            name != "latency_seconds",
            bool(_QUANTILE.search(name)),
            evaluation_rank(name),
        ),
    )


def is_serving(names: Iterable[str]) -> bool:
    """Tell whether these are the metrics of a job that answers requests: response times, rates or a
    queue, and nothing that a training reports."""
    metrics = list(names)
    if any(is_loss(name) or is_achieved(name) for name in metrics):
        return False
    return any(name.startswith("latency") or name in _SERVING for name in metrics)


_SERVING = ("request_rate", "token_rate", "queue_length")
