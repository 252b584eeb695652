"""Darknet, Kaldi, CNTK, llm.c, LitGPT, Tesseract, R's nnet, PyTorch's tutorials, TD3, VITS,
COCO's summary; vLLM, SGLang, llama.cpp, TGI, perf_analyzer.

Their lines say in a fixed form what their numbers are.

Servers print throughput and queue: token_rate, running_requests, queue_length and, by Little's law,
the mean time between two tokens of a request, latency_token_seconds: running requests by tokens per
second. Or they print the times of each request: latency_seconds, latency_first_token_seconds.
"""

from __future__ import annotations

import re
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report, whole
from dltools.probe.progress.families.latency import UNIT, UNITS

_FORMS = (
    "{step}: {loss}, {avg_loss} avg",
    "mean average precision (mAP@{}) = {val_map}",
    "Average Precision (AP) @[ IoU=0.50:0.95 | area= all | maxDets={} ] = {val_map}",
    "Average Precision (AP) @[ IoU=0.50 | area= all | maxDets={} ] = {val_map50}",
    "copypaste: {val_map},{val_map50},{val_map75},{},{},{}",
    "Average objective function for 'output' for minibatches {}-{step} is {objective} over",
    "Average objective function for 'output' for minibatches {}-{step} is {} = {objective} over",
    "Overall average objective function for 'output' is {overall_objective} over",
    "Overall average objective function for 'output' is {} = {overall_objective} over",
    "Evaluation over {} episodes: {eval_reward}",
    "Minibatch[ {}- {step}]: loss = {loss} * {}, metric = {error}%",
    "Finished Epoch[ {epoch} of {}]: [Training] loss = {train_loss} * {}, metric = {train_error}%",
    "s:{step} trl:{train_loss} lr:{} norm:{grad_norm}",
    "s:{step} tel:{val_loss}",
    "s:{step} eval:{val_hellaswag}",
    "step {step}/{} | loss {loss} ({}z)| norm {grad_norm} ({}z)| lr",
    "Epoch {epoch} | iter {step} step {} | loss train: {train_loss}, val: n/a |",
    "Epoch {epoch} | iter {step} step {} | loss train: {train_loss}, val: {} |",
    "iter {step} value {loss}",
    "{step} {}% ({}m {}s) {loss}",
    "{}m {}s (- {}m {}s) ({step} {}%) {loss}",
    "At iteration {}/{step}/{}, ... train={train_cer}%, ... train={train_wer}%,",
    "Avg generation throughput: {token_rate} tokens/s, Running: {running_requests} reqs, "
    "...ing: {queue_length} reqs, GPU",
    "#running-req: {running_requests}, ...gen throughput (token/s): {token_rate}, "
    "#queue-req: {queue_length}",
    "#running-req: {running_requests}, ...gen throughput (token/s): {token_rate}",
    "print_timing: ... n_... = {}, tg = {token_rate} t/s",
    "prompt eval time = {latency_first_token_seconds} / {} tokens ( {}",
    "eval time = {} ms / {} ...( {latency_token_seconds} per token, {token_rate} tokens per second",
    " total time = {latency_seconds} / {} tokens",
    'total_time="{latency_seconds}" ... queue_time="{queue_seconds}" ... '
    'time_per_token="{latency_token_seconds}"',
    '"total_time": "{latency_seconds}", ..."queue_time": "{queue_seconds}", ..."time_per_token": '
    '"{latency_token_seconds}"',
    'total_time="{latency_seconds}" ... queue_time="{queue_seconds}"',
    "Throughput: {request_rate} infer/sec",
)
"""`{loss}` is a number, `{}` one that is no metric, ` ` any blanks or none, `...` anything. Of two
forms that begin alike the longer one stands first. A time has its unit behind it."""

_PART = re.compile(r"(\{\w*\}|\.\.\.| +)")
_COUNTERS = ("step", "epoch")


def _expression(form: str) -> str:
    """Return the regular expression of a form: a group for each number with a name. For numbers
    of the form there may be zeros."""
    return "".join(map(_part, _PART.split(form)))


def _part(part: str) -> str:
    name = part.strip("{}")
    if part == "...":
        return ".*?"
    if part.isspace():
        return r"\s{0,40}"
    if not part.startswith("{"):
        return re.sub(r"\d+", r"(?:\g<0>|0)", re.escape(part))
    if name in _COUNTERS:
        return rf"(?P<{name}>\d{{1,18}})"
    unit = rf"\s?(?P<{name}_unit>{UNIT})(?!\w)" if name.endswith("_seconds") else ""
    return f"(?P<{name}>{PLAIN_NUMBER})" + unit if name else PLAIN_NUMBER


_USUAL = ("step", "loss", "norm", "train", "Epoch", "iter")


def _hint(form: str) -> str:
    """Return the longest text in a form that few other lines have, without digits and blanks."""
    parts = re.split(r"\{\w*\}|\.\.\.|[ \d]+", form)
    return max((part for part in parts if part not in _USUAL), key=len)


_TASK = Regex(r"(?:Evaluate annotation type \*|IoU metric: |copypaste: Task: )(\w+)", re.IGNORECASE)
"""Of what COCO's summary is, where it is not of boxes."""

_READ = tuple((_hint(form), Regex(_expression(form), re.IGNORECASE)) for form in _FORMS)


_ABOVE_LIST = Regex(r"\bTrain Epoch: \d+ \[\d+(?:\.\d+)?%\]\s*$", re.IGNORECASE)
_LIST = Regex(rf"\[((?:{PLAIN_NUMBER}, ){{5,6}})(\d{{1,18}}), {PLAIN_NUMBER}\]\s*$")
_LISTED = ("disc_loss", "gen_loss", "fm_loss", "mel_loss", "kl_loss")
"""VITS' list of losses, a step and the learning rate, what it prints above, and the names of the
losses; where there are six, the fifth is of the duration."""

_READ_TOO = {"annotation type": _TASK, "iou metric": _TASK, "copypaste: task": _TASK}
_READ_TOO |= {"train epoch": _ABOVE_LIST, "[0.0, 0.0, 0.0, 0.0, ": _LIST}
_HINTED = (*((hint.lower(), form) for hint, form in _READ), *_READ_TOO.items())
_HINTS = [hint for hint, _ in _HINTED]


class Log:
    """A log with lines of these forms."""

    name: ClassVar[str] = "forms"
    partial: ClassVar[bool] = True

    def __init__(self) -> None:
        self._task = ""
        self._is_above = False  # a list of losses may follow
        self._has_summary = False  # which Detectron2 says again in percent

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may have one of these forms."""
        may_be = any(map(lower.__contains__, _HINTS))
        return may_be and any(hint in lower and form.search(lower) for hint, form in _HINTED)

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        is_below, self._is_above = self._is_above, bool(_ABOVE_LIST.search(line))
        if is_below and (match := _LIST.search(line)):
            values = match[1].rstrip(", ").split(", ")
            names = (*_LISTED[:4], "dur_loss", *_LISTED[4:]) if values[5:] else _LISTED
            return report(self.name, zip(names, values, strict=True), step=whole(match[2]))
        for hint, form in _READ:
            if hint in line and (match := form.search(line)):
                return self._points(match.groupdict())
        if match := _TASK.search(line):
            self._task = "" if match[1] == "bbox" else f"{match[1]}_"
        return []

    def _points(self, said: dict[str, str | None]) -> list[Point]:
        if "val_map75" in said and self._has_summary:
            return []
        self._has_summary = self._has_summary or "val_map50" in said
        step, epoch = whole(said.pop("step", None)), said.pop("epoch", None)
        values = {
            name: float(text) * UNITS[said.get(f"{name}_unit") or "s"]
            for name, text in said.items()
            if text and not name.endswith("_unit")
        }
        running, tokens = values.get("running_requests", 0), values.get("token_rate", 0)
        if running > 0 and tokens > 0:
            values["latency_token_seconds"] = running / tokens
        at = float(epoch) if epoch else None
        return [
            Point(name.replace("val_map", f"val_{self._task}map"), value, step, at, self.name, name)
            for name, value in values.items()
            if value >= 0 or "map" not in name  # of COCO's summary: nothing was to be found
        ]
