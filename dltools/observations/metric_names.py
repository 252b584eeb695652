"""What the names of metrics mean: their normal form, and which direction is better."""

from __future__ import annotations

import functools
import re

_WORDS = {
    "training": "train", "trn": "train", "tr": "train", "tst": "test", "te": "test", "vl": "val",
    "cv": "val", "valid": "val", "validation": "val", "validate": "val", "vali": "val",
    "dev": "val", "heldout": "val", "accurancy": "accuracy", "accu": "accuracy", "va": "val",
    "evaluation": "eval", "testing": "test", "dtrain": "train", "dtest": "test", "dvalid": "val",
    "acc": "accuracy", "ppl": "perplexity", "err": "error",
    "gnorm": "grad_norm", "gradnorm": "grad_norm", "gradient": "grad",
    "lr": "learning_rate", "ret": "return", "xent": "cross_entropy", "prec": "precision",
}  # fmt: skip
PHASES = ("train", "val", "eval", "test")
"""What a normal name may begin with."""

EVALUATED = tuple(f"{phase}_" for phase in PHASES[1:])
"""What the names of an evaluation's metrics begin with."""

_EVALUATIONS = frozenset(PHASES[1:])

_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|[^A-Za-z0-9]+")

_MEASURES = frozenset({
    "batch", "batches", "beta", "bsz", "bytes", "clip", "clock", "count", "cpu", "date", "day",
    "days", "decay", "device", "docs", "dropout", "duration", "elapsed", "epoch", "epochs",
    "eta", "eta_seconds", "examples", "file", "flops", "flos", "fps", "gb", "gib", "gpu",
    "gpus", "hfu", "hours", "id", "image", "images", "img", "instances", "ips", "it", "iter",
    "iteration", "iterations", "iters", "its", "kb", "level", "line", "lineno", "lr", "mb",
    "mem", "memory", "mfu", "mib", "minutes", "mode", "momentum", "ms", "msec", "name", "nan",
    "nsentences", "ntokens", "num", "oom", "parameters", "params", "percent", "pid", "port",
    "progress", "qps", "ram", "rank", "records", "remaining", "rows", "rps", "runtime", "s",
    "sample", "samples", "scale", "scaler", "sec", "second", "seconds", "secs", "seed",
    "sentences", "size", "skipped", "speed", "split", "step", "steps", "tflops", "throughput",
    "time", "times", "timestamp", "token", "tokens", "tps", "ts", "update", "updates", "ups",
    "v", "v_num", "version", "vram", "wall", "wallclock", "walltime", "words", "worker",
    "workers", "wps",
})  # fmt: skip
_NO_METRICS = frozenset({
    "learning_rate", "base_learning_rate", "weight_decay", "num_updates", "reward_rate",
})  # fmt: skip

_QUALITIES = frozenset({
    "accuracy", "bleu", "dice", "f1", "iou", "match", "perplexity", "precision", "recall", "return",
    "reward", "rewards", "rouge", "score",
})  # fmt: skip
"""A name that ends in one of these is a metric's, whatever it is of: `mean_token_accuracy`."""

STATISTICS = frozenset({"mean", "avg", "average", "median"})

_RISING = ("acc", "f1", "auc", "bleu", "rouge", "precision", "recall", "map", "iou", "dice",
           "reward", "rew", "return", "score", "r2", "top1", "top5", "likelihood", "log_prob",
           "ndcg", "psnr", "ssim", "objective", "correct", "satisfied", "success",
           "exact_match")  # fmt: skip
"""Parts of names that rise."""

_RISING_WORDS = frozenset({
    "ap", "ar", "arc", "auprc", "auroc", "boolq", "chrf", "cider", "comet", "core", "elo", "em",
    "extrinsic", "f", "f2", "fitness", "hitrate", "hr", "wins",
    "gsm", "gsm8k", "hellaswag", "hit", "hits", "humaneval", "is", "jaccard", "kappa", "lambada",
    "ari", "ll", "logl", "loglikelihood", "mbo", "mbpp", "mcc", "meteor", "mmlu", "mrr", "nmi",
    "openbookqa", "pass", "pcc", "pearson", "pesq", "piqa", "plddt", "pck", "r", "sdr",
    "sensitivity", "snr", "spearman", "specificity", "spl", "stoi", "truthfulqa", "uas", "las",
    "fb1", "utility", "win", "winogrande", "winrate",
})  # fmt: skip
"""Words that rise, also with a number behind: `val_ap50`."""

_FALLING = ("loss", "error", "neg", "nll", "perplexity")
_FALLING_WORDS = frozenset({
    "ade", "bpb", "bpc", "cer", "eer", "entropy", "fde", "fid", "kid", "kl", "lpips", "mae", "mse",
    "regret", "rmse", "ter", "wer",
})  # fmt: skip
"""Words that fall, whatever stands beside them: `lambada_bpb`."""

JUDGED = _QUALITIES.union(_RISING, _RISING_WORDS, _FALLING, _FALLING_WORDS)
"""Words by which a metric is known."""


@functools.lru_cache(maxsize=4096)
def normal_name(name: str) -> str:
    """Return a metric's normal name: snake_case, its phase first, abbreviations written out.

    `Validation/Loss`, `valid_loss` and `loss/val` are all `val_loss`; `Acc@1` is `accuracy_1`;
    `validation_0-logloss` is `val_0_logloss`.
    """
    words = [word.lower() for word in _BREAK.split(name.replace("'s", "")) if word]
    words = [_WORDS.get(word, word) for word in words]
    if words[-2:-1] == ["loss"] and words[-1] in ("value", "function"):
        words.pop()
    if words[:1] == ["train"] and not _EVALUATIONS.isdisjoint(words):
        del words[0]  # said in a line of the training
    for phase in PHASES:
        if phase in words[1:] and words[0] not in PHASES:
            words.remove(phase)
            words.insert(0, phase)
            break
    return "_".join(words)


@functools.lru_cache(maxsize=4096)
def is_metric(name: str) -> bool:
    """Tell whether a normal name is that of a metric, by which a job can be judged.

    It is not for rates, sizes, times, counters and settings: `learning_rate`, `eta`, `loss_scale`.
    """
    if not name or name in _NO_METRICS:
        return False
    words = name.split("_")
    if "scale" in words or "scaler" in words or words[-1] == "time":
        return False
    if any("loss" in word for word in words) or _last_word(words) in _QUALITIES:
        return True
    if words[-1] in ("epoch", "step", "token") and _last_word(words[:-1]) in JUDGED:  # Lightning
        return True
    return name[0].isalpha() and "learning_rate" not in name and not _MEASURES.intersection(words)


@functools.lru_cache(maxsize=4096)
def objective(name: str) -> str:
    """Return "max" where a greater value of a metric of this name is better, else "min"."""
    lower = name.lower()
    words = {*lower.split("_"), *(word.rstrip("0123456789") for word in lower.split("_"))}
    if any(part in lower for part in _FALLING) or words & _FALLING_WORDS:
        return "min"
    is_rising = any(part in lower for part in _RISING) or words & _RISING_WORDS
    return "max" if is_rising or _is_rising_rate(words) else "min"


def has_direction(name: str) -> bool:
    """Tell whether a name says whether its metric is to rise."""
    lower = name.lower()
    words = {word.rstrip("0123456789") for word in lower.split("_")}
    return any(part in lower for part in (*_FALLING, *_RISING)) or bool(
        words & (_FALLING_WORDS | _RISING_WORDS | _QUALITIES)
    )


def _is_rising_rate(words: set[str]) -> bool:
    return "rate" in words and bool(
        words & {"solve", "solved", "completion", "pass", "request", "token"}
    )


def _last_word(words: list[str]) -> str:
    """Return the last word of a name that is neither a number nor a statistic."""
    kept = [word for word in words if not word.isdigit() and word not in STATISTICS]
    return kept[-1] if kept else ""
