"""fairseq: simple lines, bars, JSON, hydra.

It prints `| epoch 004 | loss 4.640 | ...`, and JSON after `train_inner`, `train` or `valid`.
A subset of the validation has its own name (`dev_other`) instead of `valid`, also before metrics.
"""

from __future__ import annotations

import json
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report, whole

_SIMPLE = Regex(r"\| epoch (\d{1,9})(?: \| (?:valid|train|test) on [^|]*?)?(?= \| \w+ )")
_BAR = Regex(r"\| epoch (\d{1,9}):\s+(\d{1,18}) / \d+ ")
_FIELD = Regex(rf"\| (\w+) ({PLAIN_NUMBER})(?=%? \||\s*$)")
_EQUALS = Regex(rf"\b(\w+)=({PLAIN_NUMBER})")
_JSON = Regex(r"(?:\]\[|\| )([\w.-]+)(?:\]\[INFO\] - | \| )(?=\{)")
_KEPT = ("loss", "ppl", "gnorm", "accuracy", "bleu", "wer", "uer", "error", "perplexity")


class Log:
    """A fairseq log. Time elapsed: `wall`."""

    name: ClassVar[str] = "fairseq"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("epoch",)

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "epoch" not in line:
            return []
        if '{"epoch"' in line and (match := _JSON.search(line)):
            return self._json(line[match.end() :], match[1])
        if "| epoch " not in line or "loss" not in line:
            return []
        if (match := _BAR.search(line)) and "loss=" in line:
            fields = dict(m.groups() for m in _EQUALS.finditer(line, match.end()))
            return self._report(fields, float(match[1]), int(match[2]), "")
        if (match := _SIMPLE.search(line)) and "step " not in line[: match.start()]:
            fields = dict(m.groups() for m in _FIELD.finditer(line, match.end()))
            if "loss" not in fields and "valid_loss" not in fields:
                return []
            phase = "val" if " valid on " in line else "test" if " test on " in line else ""
            return self._report(fields, float(match[1]), None, phase)
        return []

    def _json(self, text: str, tag: str) -> list[Point]:
        try:
            record = json.loads(text)
            fields = {str(key): str(value) for key, value in record.items()}
            epoch = float(fields.get("epoch", "nan"))
        except (ValueError, AttributeError, RecursionError):
            return []
        if tag == "train_inner":
            return self._report(fields, epoch, None, "")
        # the epoch's mean or a validation, under names such as train_loss
        fields = {key: value for key, value in fields.items() if key.startswith(f"{tag}_")}
        return self._report(fields, epoch, None, "" if tag == "train" else "val", f"{tag}_")

    def _report(
        self, fields: dict[str, str], epoch: float, step: int | None, phase: str, prefix: str = ""
    ) -> list[Point]:
        pairs = [
            (name, value)
            for name, value in fields.items()
            if any(word in name for word in _KEPT) and "scale" not in name and "best" not in name
        ]
        updates, wall = fields.get(f"{prefix}num_updates", ""), fields.get(f"{prefix}wall")
        if updates.isdecimal():
            step = whole(updates)
        try:
            elapsed = float(wall) if wall is not None else None
        except ValueError:
            elapsed = None
        return report(
            self.name,
            pairs,
            step=step,
            epoch=epoch if epoch < 1e9 else None,
            phase=phase,
            elapsed_s=elapsed,
        )
