"""What the words of a printed name say: a metric, a counter, a setting."""

from __future__ import annotations

import functools
import itertools
import re
from enum import IntEnum

from dltools.observations.metric_names import is_metric, normal_name


class Sort(IntEnum):
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


_METRICS = frozenset({
    "accuracy", "perplexity", "mse", "mae", "rmse", "mape", "rmsle", "f1", "auc", "auroc", "auprc",
    "roc", "bleu", "sacrebleu", "rouge", "rougel", "rouge1", "rouge2", "meteor", "chrf", "comet",
    "cider", "reward", "rewards", "rew", "iou", "miou", "giou", "map", "map50", "map75", "ap50",
    "ap75", "wer", "cer", "per", "bpb", "bpc", "bpd", "bpt", "nll", "elbo", "psnr", "ssim", "fid",
    "kid", "lpips", "mrr", "ndcg", "mcc", "pearson", "spearman", "dice", "r2", "logloss",
    "mlogloss", "hellaswag", "mmlu", "gsm8k", "humaneval", "arc", "piqa", "winogrande",
    "top1", "top5", "objective", "em", "eer", "der", "sdr",
    "snr", "sisnr", "epe", "mpjpe", "chamfer", "silog", "absrel", "likelihood", "crps",
    "smape", "mase", "spl", "softspl",
})  # fmt: skip
_WEAK = frozenset({
    "error", "errors", "score", "scores", "return", "returns", "recall", "precision", "objective",
    "map", "per", "em", "arc", "ap", "ar", "dice", "roc", "comet", "top1", "der", "kid",
    "sensitivity", "specificity", "fitness", "cost", "correlation", "fid", "meteor", "success",
})  # fmt: skip
_BESIDE = frozenset({
    "kl", "entropy", "norm", "advantage", "advantages", "logp", "logps", "clipfrac", "divergence",
    "margin", "margins",
})  # fmt: skip
_PAIRS = frozenset({
    ("success", "rate"), ("win", "rate"), ("exact", "match"), ("bits", "byte"), ("pass", "rate"),
    ("cross", "entropy"), ("log", "likelihood"), ("solve", "rate"), ("error", "rate"),
    ("grad", "norm"), ("success", "ratio"), ("hit", "rate"), ("completion", "rate"),
    ("trial", "value"), ("avg", "r"), ("mean", "r"), ("ep", "r"), ("episode", "r"),
})  # fmt: skip
_SETTINGS = frozenset({
    "weight", "weights", "weighted", "coef", "coeff", "coeffs", "coefs", "coefficient", "scale",
    "scaler", "scaling", "lambda", "alpha", "beta", "gamma", "threshold", "thresh", "thr", "target",
    "clip", "clipping", "eps", "epsilon", "factor", "interval", "freq", "frequency", "every",
    "patience", "warmup", "smoothing", "temperature", "penalty", "bound", "limit", "type", "fn",
    "func", "mode", "name", "index", "idx", "id", "ids", "num", "n", "count", "size",
    "dim", "len", "length", "port", "decay", "tolerance", "tol", "init", "dtype", "bits", "start",
    "frac",
    "schedule", "window", "history", "path", "use", "enable", "print", "save", "reduction",
    "multiplier", "best", "lower", "higher", "code", "codes", "baseline", "expected", "goal",
    "increment", "ignore", "denom", "offset", "seed", "chunk", "chunks",
    "parallel",
})  # fmt: skip
_STEPS = {name: rank for rank, names in enumerate((
    ("global_step", "global_steps", "globalstep"),
    ("step", "current_step", "current_steps", "train_step", "training_step", "optimizer_step",
     "opt_step", "steps", "stp", "curr_step", "gradient_step", "local_step"),
    ("iter", "iteration", "itr", "it", "train_iter", "iters", "iteration_number", "n_iter",
     "current_iteration", "train_iteration", "training_iteration", "current_iter", "round", "rnd"),
    ("update", "updates", "num_updates", "policy_update", "n_updates"),
    ("total_timesteps", "timesteps", "timestep", "num_timesteps", "env_steps", "env_step",
     "total_steps_done", "total_env_steps", "num_env_steps", "frames", "frame"),
    ("batch", "minibatch", "mini_batch", "batch_idx", "batch_index", "batch_id", "batches",
     "train_batch"),
    ("episode", "episodes", "ep", "eps", "game", "generation", "gen",
     "trial"),
), 1) for name in names}  # fmt: skip
_EPOCHS = frozenset({"epoch", "train_epoch", "current_epoch", "cur_epoch", "epoch_num", "epoch_idx",
                     "epoch_number", "curr_epoch", "training_epoch", "val_epoch", "eval_epoch",
                     "test_epoch"})  # fmt: skip
_AT = re.compile(
    r"(?:^|_)(?:p|pass|hit|hits|ap|map|top|accuracy|recall|precision|ndcg|hr|mrr|r)_?\d+(?:_|$)"
)
_LOSS = re.compile(r"loss(?:es)?\d*|loss[a-z]|[a-z0-9]{1,20}loss(?:es)?")
_GENERATIVE = re.compile(
    r"l_(?:g_|d_)?[a-z]\w{1,20}|(?:d|g)_(?:real|fake|gan|l1|a|b)|(?:cycle|idt)_[ab]"
)
"""Losses of BasicSR, of pix2pix and CycleGAN."""

_FILE = re.compile(r"\.(?:py|cc|cpp|cu|c|h|js|ts|rs|go|sh|ipynb|json|ya?ml|txt|log)$")


@functools.lru_cache(maxsize=4096)
def sort(name: str) -> Sort:
    """Return what a printed name is."""
    normal = normal_name(name)
    if _FILE.search(name):
        return Sort.OTHER
    if normal in _EPOCHS:
        return Sort.EPOCH
    if normal in _STEPS:
        return Sort.STEP
    if not is_metric(normal):
        return Sort.OTHER
    words = normal.split("_")
    if _SETTINGS.intersection(words) or words[-1] == "mask" or len(normal) > 80:
        return Sort.OTHER
    if any(_LOSS.fullmatch(word) for word in words):
        return Sort.METRIC if ("max" not in words and "min" not in words) else Sort.BESIDE
    if "max" in words and "norm" in words:
        return Sort.OTHER
    if _GENERATIVE.fullmatch(normal):
        return Sort.METRIC
    found = Sort.OTHER
    if _METRICS.intersection(words):
        found = Sort.WEAK if _WEAK.intersection(words) and len(words) == 1 else Sort.METRIC
    elif any(pair in _PAIRS for pair in itertools.pairwise(words)):
        found = Sort.BESIDE if "norm" in words else Sort.METRIC
    elif _AT.search(normal) and words[-1].isdigit():
        found = Sort.METRIC
    elif _WEAK.intersection(words):
        found = Sort.WEAK
    elif _BESIDE.intersection(words):
        found = Sort.BESIDE
    if found > Sort.BESIDE and ("max" in words or "min" in words or "std" in words):
        return Sort.BESIDE
    return found


def step_rank(name: str) -> int:
    """Return how much a counter's name says, 1 most: a global step more than a batch."""
    return _STEPS.get(normal_name(name), 99)


HINTS = (
    "loss", "acc", "err", "ppl", "perp", "rew", "map", "mse", "mae", "f1", "auc", "bleu", "iou",
    "wer", "cer", "return", "score", "bp", "nll", "elbo", "rate", "rouge", "psnr", "ssim", "fid",
    "lpips", "mrr", "mcc", "ndcg", "dice", "objective", "match", "recall", "precision", "eer",
    "likelihood", "@", "pearson", "spearman", "cost", "fitness", "snr", "hellaswag", "mmlu",
    "gsm8k", "top1", "r2", "bits", "auroc", "sensitivity", "correlation", "cider", "chrf", "sdr",
    "l_", "d_", "g_", "entropy", "success", "trial ", " val",
)  # fmt: skip
"""A line without any of these, in small letters, has no metric: looking for them is quick."""

COUNTERS = ("epoch", "iter", "step", "episode", "batch", "round")
"""A line without any of these, in small letters, is no heading."""

_WITH_ZEROS = frozenset(re.sub("[1-9]", "0", word) for word in (*HINTS, *COUNTERS))


def may_be_named(lower: str) -> bool:
    """Tell whether a line may have a metric or be a heading, from its small letters and with zeros
    for its digits. The marks of MLPerf are for their family alone."""
    return ":::ml" not in lower and any(word in lower for word in _WITH_ZEROS)
