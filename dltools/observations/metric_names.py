"""What the names of metrics mean: their normal form, which direction is better, which one to judge
a job by."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

_WORDS = {
    "training": "train",
    "valid": "val", "validation": "val", "validate": "val", "dev": "val",
    "evaluation": "eval", "testing": "test",
    "acc": "accuracy", "ppl": "perplexity", "err": "error",
    "gnorm": "grad_norm", "gradnorm": "grad_norm", "gradient": "grad",
    "lr": "learning_rate",
}  # fmt: skip
_PHASES = ("train", "val", "eval", "test")

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
_NO_METRICS = frozenset({"learning_rate", "base_learning_rate", "weight_decay", "num_updates"})

_RISING = ("acc", "f1", "auc", "bleu", "rouge", "precision", "recall", "map", "iou", "dice",
           "reward", "rew", "return", "score", "r2", "top1", "top5", "likelihood",
           "ndcg", "psnr", "ssim", "objective", "correct", "satisfied")  # fmt: skip
_FALLING = ("loss", "error", "neg", "nll")


@functools.lru_cache(maxsize=4096)
def normal_name(name: str) -> str:
    """Return a metric's normal name: snake_case, its phase first, abbreviations written out.

    `Validation/Loss`, `valid_loss` and `loss/val` are all `val_loss`; `Acc@1` is `accuracy_1`;
    `validation_0-logloss` is `val_0_logloss`.
    """
    words = [word.lower() for word in _BREAK.split(name.replace("'s", "")) if word]
    words = [_WORDS.get(word, word) for word in words]
    for phase in _PHASES:
        if phase in words[1:] and words[0] not in _PHASES:
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
    if "scale" in words or "scaler" in words:
        return False
    if any("loss" in word for word in words):
        return True
    return name[0].isalpha() and "learning_rate" not in name and not _MEASURES.intersection(words)


def objective(name: str) -> str:
    """Return "max" where a greater value of a metric of this name is better, else "min"."""
    lower = name.lower()
    if any(word in lower for word in _FALLING):
        return "min"
    return "max" if any(word in lower for word in _RISING) else "min"


def evaluation_rank(name: str) -> tuple[int, str]:
    """Return a sort key that puts the best evaluation metric first.

    The order is: validation losses, other validation metrics, the training loss, other losses,
    other metrics, norms of gradients; within each of these by name.
    """
    lower = name.lower()
    if lower.startswith(("val_", "valid_", "eval_", "test_")):
        return (0 if lower.endswith("loss") else 1), name
    if lower in ("loss", "train_loss", "total_loss"):
        return 2, name
    if "grad_norm" in lower:
        return 5, name
    return (3 if "loss" in lower else 4), name


def latencies(names: Iterable[str]) -> list[str]:
    """Return the names of response times, the one to judge by first.

    `latency_seconds` is first, then the others by name: one without a quantile before `p95`.
    """
    found = (name for name in names if name.startswith("latency"))
    return sorted(found, key=lambda name: (name != "latency_seconds", evaluation_rank(name)))
