"""JSON objects, one per line or over many, with a well-known metric.

Many scripts and loggers print `{"epoch": 1, "step": 10, "train_loss": 0.5}`. There may be one level
of nesting (`{"val": {"loss": 0.4}}`) and a prefix before the object. An object counts if one
of its names is a well-known metric.

An object may hold one value, and say of what: `{"metric": "loss", "value": 0.5}`. So do MLPerf's
marks, `:::MLLOG {"key": "eval_accuracy", "value": 0.29, "metadata": {"epoch_num": 4}}`, some with
the name before the object. There `eval_accuracy` of a language model is the logarithm of its
perplexity, and that of speech recognition an error rate: the benchmark's name says which.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from dltools.observations.metric_names import normal_name
from dltools.probe.progress.base import Point, Regex, report, whole
from dltools.probe.progress.tokens import NameKind, name_kind, step_rank

_OF_PHASE = Regex(r"^(?:train|valid|test)_(?=num_updates$)")
_PHASED = ("mode", "split", "phase", "stage")
_NAMED = ("key", "metric", "tag", "name")
_MEMBER = Regex(r'"[^"]{1,100}": ?(?:"[^"]{0,200}"|[\w.+-]{1,40}),?')
_ENDS = ("}", "},")
_MOST_LINES = 200
"""A line of an object that has a line for each value, how such an object ends, and the lines of the
longest one."""

_NAME = Regex(r"(\w+): $")
_STEPS = ("step_num", "step", "iteration", "samples_count")
_PERPLEXITY_OF = ("gpt", "llama", "deepseek", "gemma", "mixtral", "moe", "qwen")
_ERRORS_OF = ("rnn",)


class Log:
    """A log of JSON lines."""

    name: ClassVar[str] = "jsonlines"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        self._accuracy = "eval_accuracy"  # what a mark of that name is
        self._begun: list[str] = []  # the lines of an object that has not ended

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may end with an object, or be a part of one."""
        if lower.rstrip().endswith("}") and '{"' in lower:
            return True
        text = lower.strip()
        return text == "{" or text in _ENDS or bool(_MEMBER.fullmatch(text))

    def points(self, line: str) -> list[Point] | None:
        """Return the points of one line, None for a part of an object that ends later."""
        text = line.strip()
        if text == "{" or self._begun:
            begun, self._begun = self._begun, []
            if text == "{" or (_MEMBER.fullmatch(text) and len(begun) < _MOST_LINES):
                self._begun = [text] if text == "{" else [*begun, text]
                return None
            if text in _ENDS:
                line = " ".join(begun).rstrip(",").replace("{ ", "{") + "}"
        at = line.find('{"')
        try:
            record = json.loads(line[at:])
        except (ValueError, RecursionError):
            return []
        if not isinstance(record, dict):
            return []
        if "value" in record:
            before = _NAME.search(line[max(0, at - 100) : at])
            name = before[1] if before else next(filter(None, map(record.get, _NAMED)), "")
            record = self._of_value(str(name), record)
        return self._record(record)

    def _of_value(self, name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Return what an object of one value says, the value under its name."""
        value, about = record["value"], record.get("metadata") or record
        if name == "submission_benchmark":
            self._accuracy = _accuracy_of(str(value).lower())
        if not isinstance(about, dict) or not name:
            return {}
        if name == "eval_accuracy":
            kind = about.get("metric")
            name = f"eval_{kind}".replace("CLIP", "clip_score") if kind else self._accuracy
        values = value if isinstance(value, dict) else {"": value}
        at = {"epoch": about.get("epoch_num", about.get("epoch"))}
        at["step"] = next((about[key] for key in _STEPS if key in about), None)
        return {f"{name}_{part}".strip("_"): of for part, of in values.items()} | at

    def _record(self, record: dict[str, Any]) -> list[Point]:
        flat: dict[str, float] = {}
        at = record.get("step")
        if isinstance(at, list) and all(isinstance(part, int) for part in at):
            record |= zip(("epoch", "step"), at[:1] + at[-1:] * (len(at) > 1), strict=False)
        elif isinstance(at, str) and at.isalpha():
            return []  # settings, which DLLogger gets with the step PARAMETER
        for key, value in record.items():
            if isinstance(value, dict):
                prefix = "" if key in ("metrics", "data", "logs", "stats") else f"{key}/"
                for inner, number in value.items():
                    _add(flat, f"{prefix}{inner}", number)
            else:
                _add(flat, key, value)
        phases = (_phase(record.get(key)) for key in _PHASED)
        return points_of(self.name, flat, next(filter(None, phases), ""))


def points_of(source: str, flat: Mapping[str, float], phase: str = "") -> list[Point]:
    """Return the points of values by their names: metrics, if one is well known, and counters."""
    names, step_name, epoch_name = _meant(tuple(flat))
    step = flat[step_name] if step_name else None
    return report(
        source,
        [(name, flat[name]) for name in names],
        step=whole(f"{step:.0f}") if step is not None and 0 <= step < 2**63 else None,
        epoch=flat[epoch_name] if epoch_name else None,
        phase=phase,
    )


@functools.lru_cache(maxsize=256)
def _meant(names: tuple[str, ...]) -> tuple[list[str], str, str]:
    """Return which names of an object are metrics, if one is well known, and which are its step and
    its epoch, "" for none."""
    kinds = {name: name_kind(_OF_PHASE.sub("", name)) for name in names}
    steps = [name for name, kind in kinds.items() if kind is NameKind.STEP]
    metrics = [name for name, kind in kinds.items() if kind >= NameKind.BESIDE]
    return (
        metrics if any(kinds[name] > NameKind.BESIDE for name in metrics) else [],
        min(steps, key=lambda name: step_rank(_OF_PHASE.sub("", name)), default=""),
        next((name for name, kind in kinds.items() if kind is NameKind.EPOCH), ""),
    )


def _accuracy_of(benchmark: str) -> str:
    """Return what `eval_accuracy` is in a benchmark of MLPerf."""
    if benchmark.startswith(_PERPLEXITY_OF):
        return "eval_log_perplexity"
    return "eval_wer" if benchmark.startswith(_ERRORS_OF) else "eval_accuracy"


def _phase(value: object) -> str:
    """Return the phase that an object says, "" for none and for the training."""
    name = normal_name(value) if isinstance(value, str) else ""
    return name if name in ("val", "eval", "test") else ""


def _add(flat: dict[str, float], name: str, value: object) -> None:
    if isinstance(value, bool) or len(flat) >= 200 or len(name) > 200:
        return
    if isinstance(value, (int, float)):
        flat[name] = float(value) if abs(value) < 1e308 or value != value else float("inf")
    elif isinstance(value, str) and 0 < len(value) < 30:
        if "/" in value:  # "global_step/max_steps": "5/900"
            name, value = name.partition("/")[0], value.partition("/")[0]
        with contextlib.suppress(ValueError):
            flat[name] = float(value)
