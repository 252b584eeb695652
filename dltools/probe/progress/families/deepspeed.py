"""DeepSpeed and DeepSpeed-Chat: `steps: 10 loss: 0.69 iter time (s): ...`, PPO lines, evaluations.

`Epoch 1/16 with loss 0.57` is the mean of an epoch, `ppl: 2.01` an evaluation between epochs.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PAIR, PLAIN_NUMBER, Point, Regex, report

N = PLAIN_NUMBER
_STEPS = Regex(rf"\bsteps: (\d+) loss: ({N}) (?:iter time|lr)")
_PPO = Regex(r"^\s*[Ee]poch: (\d+) ?\| ?[Ss]tep: (\d+) ?\| ?(?:ppo_ep: \d+ ?\| ?)?")
_EPOCH = Regex(rf"^Epoch (\d+)/\d+ with loss ({N})")
_STARTS = Regex(r"(?:Beginning of Epoch|Evaluating \w+, Epoch) (\d+)/\d+")
_PPL = Regex(rf"^ppl: ({N})(?:, loss: ({N}))?\s*$")
_SCORES = Regex(
    rf"chosen_last_scores \(higher is better\) : ({N}),.*?\bacc \(higher is better\) : ({N})"
)


class Log:
    """A DeepSpeed log."""

    name: ClassVar[str] = "deepspeed"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("epoch ", "ppl: ", "higher is better", "steps: ", "_loss")

    def __init__(self) -> None:
        self._epoch: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "Epoch " in line:
            if match := _STARTS.search(line):
                self._epoch = float(match[1])
                return []
            if match := _EPOCH.search(line):
                self._epoch = float(match[1])
                return report(self.name, [("loss", match[2])], epoch=self._epoch)
        if line.startswith("ppl: ") and (match := _PPL.search(line)):
            pairs = [("ppl", match[1]), *([("loss", match[2])] if match[2] else [])]
            return report(self.name, pairs, epoch=self._epoch, phase="val")
        if "higher is better" in line and (match := _SCORES.search(line)):
            pairs = [("chosen_last_scores", match[1]), ("acc", match[2])]
            return report(self.name, pairs, epoch=self._epoch, phase="val")
        if "steps: " in line and (match := _STEPS.search(line)):
            return report(self.name, [("loss", match[2])], step=int(match[1]), epoch=self._epoch)
        if "_loss" in line and (match := _PPO.search(line)):
            pairs = [(m[1], m[2]) for m in PAIR.finditer(line[match.end() :])]
            return report(self.name, pairs, step=int(match[2]), epoch=float(match[1]))
        return []
