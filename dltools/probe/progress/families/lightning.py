"""PyTorch Lightning: bars, checkpoint messages, the table of a test run."""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, number, report
from dltools.probe.progress.families import tqdm

_REACHED = Regex(
    rf"Epoch (\d+), global step (\d+): '?([\w/.-]+?)'? reached ({PLAIN_NUMBER}) \(best"
)
_TITLE = Regex(r"\b(Test|Validate|Runningstage\.\w+) metric\b")
_ROW = Regex(rf"^[\s\u2502|]*([A-Za-z][\w./-]*)\s+(?:[\u2502|]\s*)?({PLAIN_NUMBER})[\s\u2502|]*$")


class Log(tqdm.Log):
    """A Lightning log."""

    name: ClassVar[str] = "lightning"
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self._phase = ""

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if "v_num=" in line:
            return super().points(line)
        if "reached" in line and (match := _REACHED.search(line)):
            return report(
                self.name, [(match[3], match[4])], step=int(match[2]), epoch=float(match[1])
            )
        if " metric" in line and (match := _TITLE.search(line)):
            self._phase = "test" if "test" in match[1].lower() else "val"
            return []
        if self._phase and (match := _ROW.search(line)):
            found = report(self.name, [(match[1], number(match[2]))], phase=self._phase)
            return [p._replace(epoch=self._epoch) for p in found]
        if self._phase and line.strip().isalpha():
            self._phase = ""
        return []
