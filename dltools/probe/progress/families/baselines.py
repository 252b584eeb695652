"""Reinforcement learning: Stable-Baselines3's boxes, CleanRL's lines.

A box is a record: its closing line gives its metrics.
"""

from __future__ import annotations

from typing import ClassVar

from dltools.probe.progress.base import PLAIN_NUMBER as N
from dltools.probe.progress.base import Point, Regex, report
from dltools.probe.progress.tokens import NameKind, name_kind, step_rank

_ROW = Regex(rf"^\|\s*([\w/.-][\w/. -]{{0,99}}?)\s*\|\s*(?:({N})\s*)?\|\s*$")
_CLEAN = Regex(rf"^(?:charts/)?global_step=(\d+), episodic_return=\[?({N})\]?")
_STEPS = ("total_timesteps", "total/steps", "misc/total_timesteps")
_KEPT = ("rew", "loss", "return", "entropy", "kl", "explained_variance", "success", "ep_len")


class Log:
    """A log of boxes; the step is `total_timesteps`, the time elapsed `time_elapsed`."""

    name: ClassVar[str] = "baselines"
    partial: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("|", "-----", "episodic_return=")

    def __init__(self) -> None:
        """No box is open."""
        self._box: dict[str, float] = {}

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        if line.startswith("|"):
            if (match := _ROW.search(line)) and match[2] and len(self._box) < 200:
                self._box[match[1]] = float(match[2])
            return []
        if line.startswith("-----"):
            box, self._box = self._box, {}
            if not box or line.strip("- ") != "":
                return []
            return self._close(box)
        if "episodic_return=" in line and (match := _CLEAN.search(line)):
            return report(self.name, [("episodic_return", match[2])], step=int(match[1]))
        return []

    def _close(self, box: dict[str, float]) -> list[Point]:
        counters = [name for name in box if name_kind(name) is NameKind.STEP]
        said = min(counters, key=step_rank) if counters else None
        step = next((box[name] for name in _STEPS if name in box), box[said] if said else None)
        if step is None and "iterations" not in box and "n_updates" not in box:
            return []
        pairs = [
            (name, value) for name, value in box.items() if any(word in name for word in _KEPT)
        ]
        return report(
            self.name,
            pairs,
            step=int(step) if step is not None and abs(step) < 2**63 else None,
            elapsed_s=box.get("time_elapsed", box.get("time/time_elapsed")),
        )
