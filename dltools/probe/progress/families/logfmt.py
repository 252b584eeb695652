"""logfmt lines with a well-known metric: `level=info step=10 loss=0.5 msg="..."`.

A line has at least two pairs.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.observations.metric_names import normal_name
from dltools.probe.progress.base import PLAIN_NUMBER, Point, Regex, report, whole
from dltools.probe.progress.families.jsonlines import is_known

_PAIR = Regex(rf'(?:^|(?<=\s))([A-Za-z_][\w./-]*)=(?:"({PLAIN_NUMBER})"|({PLAIN_NUMBER})(?=\s|$)|)')
_VALUE = r'(?>"[^"]*"(?=\s|$)|\S*)'  # atomic: a quoted value can be read one way only
_WHOLE = Regex(
    rf"^(?:\S+\s+){{0,3}}[A-Za-z_][\w./-]*={_VALUE}(?:\s+[A-Za-z_][\w./-]*={_VALUE})+\s*$"
)
_STEPS = ("step", "global_step", "iter", "iteration")


class Log:
    """A log in logfmt."""

    name: ClassVar[str] = "logfmt"
    partial: ClassVar[bool] = False

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if line.count("=") < 2 or len(line) > 2000 or not _WHOLE.search(line):
            return []
        pairs = [(m[1], m[2] or m[3]) for m in _PAIR.finditer(line) if m[2] or m[3]]
        if not any(is_known(normal_name(name)) for name, _ in pairs):
            return []
        values = dict(pairs)
        step = next((values[n] for n in _STEPS if n in values and values[n].isdigit()), None)
        try:
            epoch = float(values["epoch"]) if "epoch" in values else None
        except ValueError:
            epoch = None
        return report(self.name, pairs, step=whole(step), epoch=epoch)
