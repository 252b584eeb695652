"""MXNet: Module.fit, Gluon's examples, GluonCV and GluonNLP.

`Node[0] Epoch[2] Batch [20-40]  Speed: 11228.82 samples/sec  accuracy=0.219712`. The number in
`Batch 300: Loss: 212.8` of a Gluon example is the running sum of the epoch: `loss_sum`.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report

_BATCH = Regex(r"Epoch\[(\d{1,9})\] Batch \[(?:\d+-)?(\d{1,18})\]\s")
_PAIR = Regex(rf"\b([A-Za-z][\w-]{{0,99}})=({N})(?=[\s,]|$)")
_EPOCH = Regex(rf"Epoch\[(\d{{1,9}})\] (Train|Validation|Val|Test)-([\w-]+)=({N})")
_COST = Regex(rf"Epoch\[(\d+)\] Time cost=({N})")
_GLUON = Regex(
    r"\[Epoch (\d{1,9})(?:\]\[Batch (\d{1,18})\]| Batch (\d{1,18})/\d+\]|\](?! ?Batch \d))"
    r" ?(training|validation)?"
)
_WORDS = Regex(rf"\b((?:valid |test |avg )?(?:loss|ppl)) ({N})(?=,|$)")
_TAKEN = Regex(rf"\btime(?: cost)?:? ({N})s?(?=[\s,]|$)")
_ALL = Regex(
    rf"^[Ee]poch (\d{{1,9}}), loss ({N}), train acc ({N})"
    rf"(?:, test acc ({N}))?(?:, time ({N}) sec)?\s*$"
)
_SUM = Regex(rf"^Batch (\d{{1,18}}): Loss: ({N})\s*$")
_AFTER = Regex(rf"^Epoch (\d{{1,9}}), ({N}) test_accuracy after ({N}) seconds")


class Log:
    """An MXNet log. Time elapsed: the sum of the epochs' cost."""

    name: ClassVar[str] = "mxnet"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("epoch", "batch ", "train acc ", "test_accuracy after")

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._epoch: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "Epoch[" in line:
            return self._module(line)
        if "[Epoch " in line:
            return self._gluon(line)
        if "train acc " in line and (match := _ALL.search(line)):
            self._epoch = float(match[1])
            self._elapsed += float(match[5] or 0)
            pairs = [("loss", match[2]), ("train acc", match[3]), ("test acc", match[4] or "")]
            return report(
                self.name, pairs, epoch=self._epoch, elapsed_s=self._elapsed if match[5] else None
            )
        if line.startswith("Batch ") and (match := _SUM.search(line)):
            epoch = 0.0 if self._epoch is None else self._epoch + 1
            found = report(self.name, [("Loss", match[2])], step=int(match[1]), epoch=epoch)
            return [point._replace(metric="loss_sum") for point in found]
        if "test_accuracy after" in line and (match := _AFTER.search(line)):
            self._epoch = float(match[1])
            self._elapsed += float(match[3])
            return report(
                self.name, [("test_accuracy", match[2])], epoch=self._epoch, elapsed_s=self._elapsed
            )
        return []

    def _gluon(self, line: str) -> list[Point]:
        if (match := _GLUON.search(line)) is None:
            return []
        pairs = [(_phase_alone(m[1]), m[2]) for m in _PAIR.finditer(line, match.end())]
        pairs += [(m[1], m[2]) for m in _WORDS.finditer(line, match.end())]
        batch = match[2] or match[3]
        took = None if batch else _TAKEN.search(line, match.end())
        self._elapsed += float(took[1]) if took else 0.0
        phase = {"training": "train", "validation": "val"}.get(match[4] or "", "")
        return report(
            self.name,
            pairs,
            step=int(batch) if batch else None,
            epoch=float(match[1]),
            phase=phase,
            elapsed_s=self._elapsed if took else None,
        )

    def _module(self, line: str) -> list[Point]:
        if match := _BATCH.search(line):
            pairs = [(m[1], m[2]) for m in _PAIR.finditer(line, match.end())]
            return report(self.name, pairs, step=int(match[2]), epoch=float(match[1]))
        if match := _EPOCH.search(line):
            ended = match[2] != "Train"  # the epoch's cost comes after its training metrics
            return report(
                self.name,
                [(f"{match[2]}-{match[3]}", match[4])],
                epoch=float(match[1]),
                elapsed_s=self._elapsed or None if ended else None,
            )
        if match := _COST.search(line):
            self._elapsed += float(match[2])
        return []


def _phase_alone(name: str) -> str:
    """Return the metric that GluonCV means if it prints only a phase."""
    return {
        "train": "train_accuracy",
        "training": "train_accuracy",
        "val": "val_accuracy",
        "validation": "val_accuracy",
    }.get(name, name)
