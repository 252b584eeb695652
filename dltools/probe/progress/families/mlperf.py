"""MLPerf's marks, beside the lines of any other family.

An example: `:::MLL 1558421081.652 eval_accuracy: {"value": 0.29, "metadata": {...}}`.

There are also `:::MLLOG {...}` and `:::MLPv0.5.0 ...` of v0.5.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from dltools.probe.progress.base import Point, Regex, report

_MLL = Regex(r":::MLL [\d.]+ (\w+): (\{.*\})")
_MLLOG = Regex(r":::MLLOG (\{.*\})")
_V05 = Regex(r":::MLPv[\d.]+ \S+ [\d.]+ \([^)]*\) (\w+): (\{.*\}|[-\d.e]+)")
_TEXT = Regex(r"^MLPerf: \S+ \[[\d/: ]+\], (\w+):(\S+)")
_KEYS = Regex(r"(?:^|_)(?:accuracy|loss|error|bleu|map|result)$|^eval_\w+$")
_STEPS = ("step_num", "step", "iteration", "samples_count")
_SETTINGS = Regex(
    r"(?:^|_)(?:target|threshold|offset|interval|freq|size|samples|count|num|start|stop|end|epoch"
    r"|batch)(?:_|$)"
)


_PERPLEXITY_OF = ("gpt", "llama", "deepseek", "gemma", "mixtral", "moe", "qwen")
"""Beginnings of benchmarks whose `eval_accuracy` is the logarithm of a perplexity."""

_HIGHEST = 15.0
"""Logarithms of perplexities are below this; BLEU and percentages are above."""


class Log:
    """The MLPerf marks of a log.

    `eval_accuracy` of a language model is the logarithm of its perplexity, which falls: it is
    called `eval_log_perplexity`. That of speech recognition is `eval_wer`. The benchmark's name
    says which; without one, a value between 1 and 15 does.
    """

    name: ClassVar[str] = "mlperf"
    partial: ClassVar[bool] = True

    def __init__(self) -> None:
        self._accuracy = ""

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may be a mark."""
        return ":::ml" in lower or lower.startswith("mlperf: ")

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if ":::ML" not in line and not line.startswith("MLPerf: "):
            return []
        key, value, about = _parsed(line)
        if key == "submission_benchmark":
            self._accuracy = _accuracy_of(str(value).lower())
        if key == "tracked_stats" and isinstance(value, dict):
            values = {name: v for name, v in value.items() if _is_result(name)}
        elif key is None or not _is_result(key):
            return []
        elif isinstance(value, dict):
            values = {f"{key}_{name}": v for name, v in value.items()}
        else:
            values = {self._meant(key, value): value}
        kind = about.get("metric")
        if isinstance(kind, str) and len(values) == 1:
            values = {_of_kind(kind): next(iter(values.values()))}
        pairs = [(name, str(v)) for name, v in values.items() if _is_number(v)]
        epoch = about.get("epoch_num", about.get("epoch"))
        step = next((about[name] for name in _STEPS if name in about), None)
        return report(
            self.name,
            pairs,
            step=step if isinstance(step, int) and abs(step) < 2**63 else None,
            epoch=float(epoch) if isinstance(epoch, (int, float)) and abs(epoch) < 1e9 else None,
        )

    def _meant(self, key: str, value: object) -> str:
        """Return what a result really is."""
        if key != "eval_accuracy":
            return key
        if not self._accuracy and isinstance(value, (int, float)) and 1 < value < _HIGHEST:
            self._accuracy = "eval_log_perplexity"
        return self._accuracy or key


def _accuracy_of(benchmark: str) -> str:
    """Return what `eval_accuracy` is in a benchmark."""
    if benchmark.startswith(_PERPLEXITY_OF):
        return "eval_log_perplexity"
    return (
        "eval_wer" if benchmark in ("rnnt", "rnn_t", "rnn_speech_recognition") else "eval_accuracy"
    )


def _of_kind(kind: str) -> str:
    """Return the name of a metric that a mark names beside its key: FID, CLIP."""
    return "eval_clip_score" if kind.lower() == "clip" else f"eval_{kind}"


def _is_result(key: str) -> bool:
    """Tell whether a key names something measured, not a setting or a target."""
    return bool(_KEYS.search(key)) and not _SETTINGS.search(key)


def _parsed(line: str) -> tuple[str | None, Any, dict[str, Any]]:
    """Return a mark's key, value and what it says about itself."""
    try:
        if match := _MLLOG.search(line):
            record = json.loads(match[1])
            return str(record["key"]), record["value"], record.get("metadata") or {}
        if match := _MLL.search(line):
            record = json.loads(match[2])
            return match[1], record["value"], record.get("metadata") or {}
        if match := _V05.search(line):
            record = json.loads(match[2])
            if not isinstance(record, dict):
                return match[1], record, {}
            return match[1], record.get("value"), record
        if match := _TEXT.search(line):
            return match[1], float(match[2]), {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return None, None, {}


def _is_number(value: object) -> bool:
    """Tell whether a value is a number; some marks give theirs as strings."""
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)
