"""The PyTorch examples: MNIST, ImageNet, word language model."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, number, report

_MNIST = Regex(
    rf"Train Epoch: (\d+) \[(\d+)/\d+ \(\d+(?:\.\d+)?%\)\]\s*(?:Avg\. )?[Ll]oss: (?:tensor\()?({N})"
)
_MNIST_TEST = Regex(
    rf"[Tt]est set: Average loss: ({N}), Accuracy: (?:(\d+)/(\d+) )?\(?(\d+(?:\.\d+)?)%\)?"
)
_IMAGENET = Regex(
    r"(?:^|\s)(?:(Epoch|Test|Train|Val): \[\s*(\d+)\](?:\[\s*(\d+)/\d+\])?"
    r"|(Test): \[\s*(\d+)/\d+\])"
)
_METER = Regex(rf"([A-Z][\w@./-]{{0,99}})\s+({N})\s*\(\s*{N}\)")
_TOP = Regex(rf"^\s*\*\s+(?:Prec|Acc)@1:? *({N})(?:\s+(?:Prec|Acc)@5:? *({N}))?")
_WORDS = Regex(
    rf"\| epoch\s+(\d+) \|\s*(\d+)/\s*\d+ batches \|.*?\| (loss\s+{N})(?: \| (ppl\s+{N}))?"
)
_WORDS_END = Regex(
    rf"\| (?:end of epoch\s+(\d+) \| time:\s*{N}s|End of training) \| (valid|test) loss\s+({N}) \|"
    rf" (?:valid|test) ppl\s+({N})"
)


class Log:
    """A log of one of the examples."""

    name: ClassVar[str] = "pytorch"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        """No epoch has come yet."""
        self._epoch: float | None = None

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "poch" not in line and "est" not in line and "*" not in line and "End of" not in line:
            return []
        if "rain Epoch:" in line and (match := _MNIST.search(line)):
            self._epoch = float(match[1])
            return report(self.name, [("Loss", match[3])], step=int(match[2]), epoch=self._epoch)
        if "est set:" in line and (match := _MNIST_TEST.search(line)):
            right, total = match[2], match[3]
            share = int(right) / int(total) if total and int(total) else float(match[4]) / 100
            return report(self.name, [("loss", match[1]), ("Accuracy", share)], epoch=self._epoch,
                          phase="test")  # fmt: skip
        if "| " in line:
            return self._language_model(line)
        if "@" in line or "Loss" in line:
            return self._imagenet(line)
        return []

    def _imagenet(self, line: str) -> list[Point]:
        if match := _TOP.search(line):
            pairs = [("Acc@1", match[1]), *([("Acc@5", match[2])] if match[2] else [])]
            return report(self.name, pairs, epoch=self._epoch, phase="val")
        match = _IMAGENET.search(line)
        if match is None or "TRAIN" in line:
            return []
        meters = [(m[1], m[2]) for m in _METER.finditer(line) if m[1] not in ("Time", "Data")]
        if not any(name.lower().startswith("loss") for name, _ in meters):
            return []
        if match[4]:
            return []  # a batch of the validation: its mean comes with the asterisk
        if match[1] == "Epoch":
            self._epoch = float(match[2])
        step = int(match[3]) if match[3] else None
        if match[1] in ("Test", "Val"):
            return []
        return report(self.name, meters, step=step, epoch=self._epoch)

    def _language_model(self, line: str) -> list[Point]:
        if match := _WORDS.search(line):
            self._epoch = float(match[1])
            pairs = [part.split() for part in match.groups()[2:] if part]
            return report(self.name, [(name, number(value)) for name, value in pairs],
                          step=int(match[2]), epoch=self._epoch)  # fmt: skip
        if match := _WORDS_END.search(line):
            phase = "val" if match[2] == "valid" else "test"
            epoch = float(match[1]) if match[1] else self._epoch
            return report(self.name, [("loss", match[3]), ("ppl", match[4])], epoch=epoch,
                          phase=phase)  # fmt: skip
        return []
