"""Names and numbers in a line, and what the words of a name say; called by `named`.

One expression finds every name beside a number, with all that programs put between: a colon, an
equals sign, an arrow, `is`, a blank: `loss: 0.5`, `loss=tensor(0.5, ...)`, `epoch [3/10]`,
`step:31K`. The time is linear in the line's length. The words of a name tell whether it is a
metric, a counter or a setting; families ask for that as well.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

from dltools.observations.metric_names import JUDGED, is_metric, normal_name
from dltools.probe.progress.base import Regex


class Token(NamedTuple):
    """A name and a number beside it.

    `text` is the number as printed, `total` what stands after a slash (`3/10`), `scale` a suffix of
    thousands, `delimiter` what stands between ("" for blanks), `start` and `end` the place in the
    line, `value` that of the number.
    """

    name: str
    delimiter: str
    text: str
    total: str
    scale: str
    is_percent: bool
    start: int
    end: int
    value: tuple[int, int]


NUMBER = (
    r"[-+]?(?>(?:\d{1,3}(?:,\d{3})++(?![\d])|\d++)(?:\.\d*+)?(?:[eEf][-+]?\d++)?"
    r"|\.\d++(?:[eEf][-+]?\d++)?|(?:nan|inf(?:inity)?)(?:\.0)?)"
)

_TOKEN = Regex(
    r"(?<![A-Za-z0-9_./@\\-])([A-Za-z_][\w./@+-]*+(?::0?\.95(?=:))?"  # the name, and perhaps
    r"(?: ?[(\[](?:\d{1,6} ?)?[A-Za-z%@][\w%@ .,:/=-]{0,29}[)\]]"  # a unit, a phase, arguments
    r"| \(\d{1,7}\)(?=: ?[-+.\d]))?)"  # over how many
    r"(?:['\"*`\]#]{0,2}\s{0,20}(:=|[:=]=?>?|-+>|\u2192)\s{0,20}|['\"]?\s(is|was|of|reached):?\s"
    r"|(?<!\w\w\w\.)\s{1,20}(?:#|No\. ?)?)"
    r"(?!\[\(\d+, )['\"*`]{0,2}(?:<tf\.Tensor:[^>]{0,80}numpy=)?"
    r"(?:[A-Za-z_][\w.]{0,30}[(\[]|[(\[#])?[(\[]{0,2}\s{0,4}"
    rf"({NUMBER})(?:\s?(/)\s{{0,6}}(\d++(?:,\d{{3}})*+(?:\.\d++)?)|\s?(%)(?!\|)|([kKMGB])(?=[\s,;|\])}}]|$)|(?:st|nd|rd|th)\b)?"
    r"(?!(?!dB\b|[a-z]{4,9}[: ])\w|:\d|/\w|\.\w|,\d|%\||-[A-Za-z])",
    re.IGNORECASE,
)


_COUNT = Regex(r"\((?:step|iteration|epoch|iter|episode|round) \d", re.IGNORECASE)
"""A count in the brackets behind a name."""


def tokens(line: str) -> list[Token]:
    """Return the names with numbers beside them, in order."""
    pairs: list[Token] = []
    for m in _TOKEN.finditer(line):
        name = m[1].partition("(")[0] if "," in m[1] or _COUNT.search(m[1]) else m[1]
        said = (m[2] or m[3] or "", m[4], m[6] or "", m[8] or "", m[7] is not None)
        token = Token(name, *said, m.start(), m.end(), m.span(4))
        pairs += _parted(token, line)
    return pairs


def _parted(token: Token, line: str) -> Sequence[Token]:
    """Return the two tokens that one is: the fractions of a training and an evaluation."""
    if "." not in token.total or "." not in token.text or line[token.end :][:1] == "=":
        return (token,)
    first, end = token._replace(total=""), token.end
    second = first._replace(text=token.total, start=end - 1, value=(end - len(token.total), end))
    return first, second._replace(name=f"val_{token.name}")


_PHASES = {"learn": "train", "valid": "val", "heldout": "val"} | {
    name: name for name in ("train", "val", "eval", "test")
}
_TOGETHER = ({"g": "g_loss", "d": "d_loss"}, {"p": "precision", "r": "recall", "f": "f1"})
"""Letters that say what they are by each other."""

_COUNTED_PHASE = Regex(r"\s*\d{1,15} (?:train|val|test) [\d.]+\s*")
_BEFORE_PHASES = Regex(r"([A-Za-z][\w@]*)\W{1,4}$")
_BESIDE_PHASES: tuple[set[str], ...] = (set(), {"loss"}, {"accuracy"}, {"perplexity"})


def with_meant_names(line: str, pairs: list[Token]) -> list[Token]:
    """Return the tokens; those whose name alone says too little get that of what they are.

    They are the losses of players, `g 1.37 d 0.52`, a tagger's `p: 0.5, r: 0.4, f: 0.44`, what
    losses of other names add up to, `policy=6.1 mse=0.1 total=6.2`, statistics of generations or
    episodes (`statistics_of`), the value of a trial in a search for settings, and what a phase
    alone names.
    """
    lower = [token.name.lower() for token in pairs]
    meant = statistics_of(lower)
    if any(name.startswith("trial") for name in lower):
        meant = {**meant, "value": "trial_value", "evaluation": "trial_value"}
    for together in _TOGETHER:
        if {*together} <= {*lower}:
            meant = {**meant, **together}
    if _is_total_loss(line, pairs):
        meant = {**meant, "total": "total_loss"}
    if meant:
        pairs = [token._replace(name=meant.get(token.name.lower(), token.name)) for token in pairs]
    return _with_losses_of_phases(line, pairs)


_OF_LOSSES = Regex(
    r"\b(?:loss(?:es)?|train(?:ing)?|val(?:id(?:ation)?)?|test):\s[^|\]]*$", re.IGNORECASE
)
"""What says of a total that it is of losses, or that of a phase."""

_LONGEST_LIST = 400
"""Characters before a total in which that may stand."""


def _is_total_loss(line: str, pairs: Sequence[Token]) -> bool:
    """Tell whether tokens `total` with a fraction are of losses: `Losses: box 2.5, total 6.5`; or
    the sum of the others, one of which is known to be a metric; or all there is beside an epoch and
    its step. A time among the others may be part of another total."""
    totals = [token for token in pairs if token.name.lower() == "total" and "." in token.text]
    others = [token.name for token in pairs if token not in totals]
    kinds = {*map(name_kind, others)}
    parts = [name for name in others if name_kind(name) not in COUNTER_KINDS]
    are_parts = all(is_metric(normal_name(name)) and "loss" not in name.lower() for name in parts)
    is_sum = len(parts) > 1 and are_parts and bool({NameKind.METRIC, NameKind.EPOCH} & kinds)
    if len(totals) == 1 and (is_sum or kinds == {*COUNTER_KINDS}):
        return True
    places = [(max(0, token.start - _LONGEST_LIST), token.start) for token in totals]
    return bool(places) and all(_OF_LOSSES.search(line, *place) for place in places)


_ACHIEVED = {"generation": "fitness", "gen": "fitness", "episode": "reward", "episodes": "reward"}


def statistics_of(names: Sequence[str]) -> dict[str, str]:
    """Return what statistics without a name are of, by the counter beside them, in small letters:
    `Generation 10: Best 48.5 | Avg 47.25`. The best one is the result."""
    what = next((_ACHIEVED[name] for name in names if name in _ACHIEVED), "")
    if not what:
        return {}
    meant = {name: f"{name}_{what}" for name in ("avg", "mean", "median", "max", "min")}
    return {**meant, "best": what, "fit": what}


def _with_losses_of_phases(line: str, pairs: list[Token]) -> list[Token]:
    """Return the tokens; those that a phase alone names get the name of what they are: of a loss,
    `train 0.31 val 0.35`, of an accuracy, `train 91.2%, val 90.1%` or beside a loss, or of what
    another phase of the line says, `train_mae=0.31, val=0.35`."""
    alone = [token for token in pairs if token.name.lower() in _PHASES and "." in token.text]
    if not alone:
        return pairs
    metrics = [token.name for token in pairs if name_kind(token.name) is NameKind.METRIC]
    names = [normal_name(name).partition("_") for name in metrics]
    said = next((what for phase, _, what in names if what and phase in _PHASES), "")
    are_shares = all(token.is_percent for token in alone)
    beside = {name for name, *_ in names}
    is_clear = len(alone) > 1 and (are_shares or beside in _BESIDE_PHASES)
    has_best = [token.name for token in pairs][:2] == ["test", "best"] and len(alone) == 1
    head = _BEFORE_PHASES.search(line, 0, alone[0].start)
    if head and name_kind(head[1]) is NameKind.METRIC:
        said = normal_name(head[1])
    is_loss = alone[0].name == "learn" or alone[0].delimiter == "=="  # `train==[5.2=5.0 + 0.2]`
    is_loss |= len(pairs) == 1 and bool(_COUNTED_PHASE.fullmatch(line))  # `250 train 1.75`
    if beside == {"loss"} and len(alone) == 1 and alone[0].delimiter == ":":
        is_loss = alone[0].name.lower() != "train"  # `loss: 4.1 | val: 3.5`
    if not said and not is_clear and not is_loss and not has_best:
        return pairs
    are_accuracies = are_shares or (beside == {"loss"} and not is_loss)
    what = said or ("accuracy" if are_accuracies else "loss")
    what = "score" if has_best else what  # as CatBoost may print AUC, and not the loss
    for token in alone:
        name = f"{_PHASES[token.name.lower()]}_{what}"
        meant = token._replace(name=name, delimiter=token.delimiter or " ")
        pairs[pairs.index(token)] = meant
    return pairs


class NameKind(IntEnum):
    """What a name is.

    A `BESIDE` metric counts beside a `METRIC` in the same line; a `WEAK` metric is a usual word as
    well, which needs a delimiter and a fraction.
    """

    OTHER = 0
    EPOCH = 1
    STEP = 2
    BESIDE = 3
    WEAK = 4
    METRIC = 5


COUNTER_KINDS = (NameKind.EPOCH, NameKind.STEP)

_METRICS = JUDGED.union((
    "absrel", "acc1", "acc5", "accuracies", "ade", "ap50", "ap75", "apl", "apm", "aps", "bpd",
    "bpt", "chamfer", "crps", "der", "deviance", "elbo", "epe", "eprewmean", "fde", "giou",
    "inertia", "l2re", "logloss", "map50", "map75", "mape", "mase", "merror", "miou", "mlogloss",
    "mpjpe", "per", "recon", "rewmean", "rmsle", "pcc", "roc", "rocauc", "rouge1", "rouge2",
    "rougel", "sacrebleu", "silog", "sisnr", "smape", "softspl",
)) - {
    "ap", "ar", "ari", "core", "correct", "entropy", "error", "f", "fitness", "hit", "wins",
    "hits", "hr", "is", "kl", "ll", "loss", "match", "mbo", "neg", "nmi", "pass", "precision", "r",
    "recall", "regret", "return", "satisfied", "score", "sensitivity", "specificity", "success",
    "win",
}  # fmt: skip

_WEAK = frozenset({
    "error", "errors", "score", "scores", "return", "returns", "recall", "precision", "objective",
    "map", "per", "em", "arc", "ap", "ar", "dice", "roc", "comet", "top1", "der", "kid",
    "sensitivity", "specificity", "fitness", "cost", "correlation", "fid", "meteor", "success",
    "hr", "l1", "l2", "ce", "ari", "nmi", "mbo",
})  # fmt: skip

_BESIDE = frozenset({
    "kl", "entropy", "norm", "advantage", "advantages", "logp", "logps", "clipfrac", "divergence",
    "margin", "margins",
})  # fmt: skip

_PAIRS = frozenset({
    ("success", "rate"), ("win", "rate"), ("exact", "match"), ("bits", "byte"), ("pass", "rate"),
    ("cross", "entropy"), ("log", "likelihood"), ("solve", "rate"), ("error", "rate"),
    ("grad", "norm"), ("success", "ratio"), ("hit", "rate"), ("completion", "rate"),
    ("ner", "f"), ("ents", "f"), ("trial", "value"), ("avg", "r"), ("mean", "r"), ("ep", "r"),
    ("episode", "r"), ("function", "value"), ("test", "metric"), ("log", "prob"),
    ("abs", "rel"), ("sq", "rel"), ("ll", "token"),
})  # fmt: skip

_SETTINGS = frozenset({
    "weight", "weights", "coef", "coeff", "coeffs", "coefs", "coefficient", "scale",
    "scaler", "scaling", "lambda", "alpha", "beta", "gamma", "threshold", "thresh", "thr", "target",
    "clip", "clipping", "eps", "epsilon", "factor", "interval", "freq", "frequency", "every",
    "patience", "warmup", "smoothing", "temperature", "penalty", "bound", "limit", "type", "fn",
    "func", "mode", "name", "index", "idx", "id", "ids", "num", "n", "count", "size", "dim", "len",
    "length", "port", "decay", "tolerance", "tol", "init", "dtype", "bits", "start", "frac",
    "schedule", "window", "history", "path", "use", "enable", "print", "save", "reduction",
    "multiplier", "best", "lower", "higher", "code", "codes", "baseline", "expected", "goal",
    "increment", "ignore", "denom", "offset", "seed", "stop", "chunk", "chunks", "parallel",
    "packet", "packets", "desired", "ratio", "split", "fraction", "temp",
})  # fmt: skip

_STEPS = {name: rank for rank, names in enumerate((
    ("global_step", "global_steps", "globalstep"),
    ("num_updates",),
    ("step", "current_steps", "optimizer_step", "opt_step", "steps", "stp", "gradient_step",
     "local_step"),
    ("iter", "iteration", "itr", "it", "iters", "round", "rnd", "cycle"),
    ("update", "updates", "up", "policy_update"),
    ("total_timesteps", "timesteps", "timestep", "num_timesteps", "env_steps", "env_step",
     "total_steps_done", "total_env_steps", "num_env_steps", "frames", "frame",
     "total_env_interacts", "example_counter"),
    ("n_updates",),
    ("iterations",),
    ("batch", "minibatch", "mini_batch", "batches"),
    ("episode", "episodes", "ep", "game", "generation", "gen"),
    ("eps",),
    ("trial", "trialid"),
), 1) for name in names}  # fmt: skip

_EPOCHS = frozenset({"epoch", "val_epoch", "eval_epoch", "test_epoch", "itn", "epochs", "epoka",
                     "epoche", "epoca"})  # fmt: skip

_ABOUT_COUNTERS = frozenset({
    "i", "n", "num", "cur", "curr", "current", "train", "number", "idx", "index", "id",
})  # fmt: skip
"""Words beside the name of a counter: `current_step`, `batch_idx`, `i_episode`."""


def _counter(normal: str) -> str:
    """Return the name of a counter without words about it; that of another thing as it is. What
    has a plural, `n_epochs`, says how many there are."""
    if normal in _STEPS or normal in _EPOCHS:
        return normal
    left = [word for word in normal.split("_") if word not in _ABOUT_COUNTERS]
    return left[0] if len(left) == 1 and left[0][-1:] != "s" else normal


_AT = re.compile(
    r"(?:^|_)(?:p|pass|hit|hits|ap|map|top|accuracy|recall|precision|ndcg|hr|mrr|r)_?\d+(?:_|$)"
)

_LOSS = re.compile(r"loss(?:es)?\d*|loss[a-z]|[a-z0-9]{1,20}loss(?:es)?")

_GENERATIVE = re.compile(
    r"l_(?:g_|d_)?[a-z]\w{1,20}|(?:d|g)_(?:real|fake|gan|l1|a|b)|(?:cycle|idt)_[ab]"
)
"""Losses of BasicSR, of pix2pix and CycleGAN."""

_OF_SAMPLES = re.compile(r"[fk]id\d+k")
"""What StyleGAN prints: `fid50k_full`."""

_FILE = re.compile(r"\.(?:py|cc|cpp|cu|c|h|js|ts|rs|go|sh|ipynb|json|ya?ml|txt|log)$")


@functools.lru_cache(maxsize=4096)
def name_kind(name: str) -> NameKind:
    """Return what a printed name is."""
    normal = normal_name(name)
    if _FILE.search(name):
        return NameKind.OTHER
    counter = _counter(normal)
    if counter in _EPOCHS:
        return NameKind.EPOCH
    if counter in _STEPS or _is_global_step(normal):
        return NameKind.STEP
    if not is_metric(normal):
        return NameKind.OTHER
    if "bits_per_" in normal:
        return NameKind.METRIC
    words = normal.replace("_per_", "_").split("_")
    settings = _SETTINGS.intersection(words)
    is_metric_still = (settings == {"clip"} and words[-1] == "loss") or words == ["best", "fitness"]
    is_metric_still |= settings == {"target"} and words[0] in ("train", "val", "test")  # a domain
    if (settings and not is_metric_still) or len(normal) > 80:
        return NameKind.OTHER
    if words[-1] == "cost" and words[0] in ("avg", "reader", "batch", "data"):
        return NameKind.OTHER  # the seconds that a batch takes in PaddlePaddle
    if words[-1] == "mask":
        return NameKind.BESIDE if len(words) > 2 else NameKind.OTHER
    if any(_LOSS.fullmatch(word) for word in words):
        return NameKind.METRIC if ("max" not in words and "min" not in words) else NameKind.BESIDE
    if "max" in words and "norm" in words:
        return NameKind.OTHER
    if _GENERATIVE.fullmatch(normal) or any(_OF_SAMPLES.fullmatch(word) for word in words):
        return NameKind.METRIC
    kind = NameKind.OTHER
    if _METRICS.intersection((*words, words[-1].rstrip("0123456789"))):
        kind = NameKind.WEAK if _WEAK.intersection(words) and len(words) == 1 else NameKind.METRIC
    elif any(pair in _PAIRS for pair in itertools.pairwise(words)):
        kind = NameKind.BESIDE if "norm" in words else NameKind.METRIC
    elif _AT.search(normal) and words[-1].isdigit():
        kind = NameKind.METRIC
    elif _WEAK.intersection(words):
        kind = NameKind.WEAK
    elif _BESIDE.intersection(words):
        kind = NameKind.BESIDE
    if kind > NameKind.BESIDE and ("max" in words or "min" in words or "std" in words):
        return NameKind.BESIDE
    return kind


def is_setting(normal: str) -> bool:
    """Tell whether a normal name may be that of a setting."""
    return not _SETTINGS.isdisjoint(normal.split("_"))


def step_rank(name: str) -> int:
    """Return how much a counter's name says, 1 most: a global step more than a batch."""
    normal = _counter(normal_name(name))
    return _STEPS.get(normal, 1 if _is_global_step(normal) else 99)


def _is_global_step(normal: str) -> bool:
    """Tell whether a normal name is that of a counter over all epochs, as `global_batch_idx` is."""
    return normal.startswith("global_") and _counter(normal.removeprefix("global_")) in _STEPS


HINTS = (
    "loss", "acc", "err", "ppl", "perp", "rew", "map", "mse", "mae", "f1", "auc", "bleu", "iou",
    "wer", "cer", "score", "bp", "nll", "elbo", "rate", "rouge", "psnr", "ssim", "fid", "lpips",
    "mrr", "mcc", "ndcg", "dice", "objective", "match", "recall", "precision", "eer", "likelihood",
    "@", "pearson", "spearman", "cost", "fit", "snr", "hellaswag", "mmlu", "gsm8k", "top1", "r2",
    "bits", "auroc", "sensitivity", "correlation", "cider", "chrf", "sdr", "l_", "d_", "g_",
    "entropy", "success", "trial ", " val", "train", "test", "valid", "eval", "learn", "gen ",
    "gen:", "best", " * ", "uas", "fb1", "recon", "ret", "logl", "log prob", "ll/",
)  # fmt: skip
"""A line without any of these, in small letters, has no metric: looking for them is quick."""

COUNTERS = (
    "epoch", "iter", "step", "episode", "batch", "round", "generation", "cycle", "trial", "it/s",
    "s/it", "update",
)  # fmt: skip
"""A line without any of these, in small letters, is no heading."""


class Stands(Enum):
    """Where a line stands: a name and its number may have a line each."""

    ALONE = 0
    ABOVE = 1
    BELOW = 2


_NUMBER_ALONE = re.compile(r"\s*[\[(]?\s?(?:[-+]?0*\.0+(?:e[-+]?0+)?[\s,]{0,9}){1,9}[\])]?\s*")
_NAME_ALONE = re.compile(r"(?:.{0,60}\s)?([a-z][\w/]{1,40})(?: is)?\s?:\s*")
_NAMES_ALONE = re.compile(
    r"(?!.*\b(?:nan|inf(?:inity)?)\b)(?:[a-z]{2,10}:)?\s*((?:[a-z][\w@/]{0,20}(?:,\s?|\s+|$)){2,9})"
)


def stands_of(lower: str) -> Stands:
    """Return where a line stands, from its small letters and with zeros for its digits: a number
    alone, perhaps in brackets, or what ends with a metric's name and a colon."""
    if len(lower) < _LONGEST_ALONE:
        if _NUMBER_ALONE.fullmatch(lower):
            return Stands.BELOW
        match = (_NAME_ALONE if lower.rstrip()[-1:] == ":" else _NAMES_ALONE).fullmatch(lower)
        names = match[1].replace(",", " ").split() if match else ()
        if any(name_kind(name) is NameKind.METRIC for name in names):
            return Stands.ABOVE
    return Stands.ALONE


_LONGEST_ALONE = 100

_WITH_ZEROS = tuple(re.sub("[1-9]", "0", word) for word in (*COUNTERS, *HINTS))


def may_be_named(lower: str) -> bool:
    """Tell whether a line may have a metric or be a heading, from its small letters and with zeros
    for its digits. The marks of MLPerf are for their family alone."""
    return ":::ml" not in lower and any(map(lower.__contains__, _WITH_ZEROS))
