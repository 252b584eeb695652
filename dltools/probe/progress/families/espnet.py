"""ESPnet: `INFO: 1epoch results: [train] iter_time=0.164, loss=480.386, ..., [valid] loss=...`."""

from __future__ import annotations

import functools
from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_RESULTS = Regex(r"\b(\d+)epoch results: ")
_PART = Regex(r"\[(train|valid|att_plot)\] ")
_BATCHES = Regex(r"\b(\d+)epoch:(train|valid):(?:(\d+)-)?(\d+)batch: ")
_PAIR = Regex(rf"\b([A-Za-z]\w*)=({N})(?=,|\s|$)")
_KEPT = ("loss", "acc", "cer", "wer", "ppl", "error", "grad_norm")


class Log:
    """An ESPnet log."""

    name: ClassVar[str] = "espnet"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("epoch",)

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "epoch" not in line or "=" not in line:
            return []
        if match := _BATCHES.search(line):
            phase = "val" if match[2] == "valid" else ""
            return self._report(line[match.end() :], float(match[1]), int(match[4]), phase)
        if match := _RESULTS.search(line):
            found: list[Point] = []
            parts = _PART.split(line[match.end() :])
            for part, text in zip(parts[1::2], parts[2::2], strict=True):
                if part != "att_plot":
                    phase = "val" if part == "valid" else "train"
                    found += self._report(text, float(match[1]), None, phase)
            return found
        return []

    def _report(self, text: str, epoch: float, step: int | None, phase: str) -> list[Point]:
        pairs = [(m[1], m[2]) for m in _PAIR.finditer(text) if _is_kept(m[1])]
        return report(self.name, pairs, step=step, epoch=epoch, phase=phase)


@functools.lru_cache(maxsize=1024)
def _is_kept(name: str) -> bool:
    return any(word in name for word in _KEPT) and "time" not in name and "lr" not in name
