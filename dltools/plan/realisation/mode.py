"""What was chosen for a host: its mode, and the comparison of arrangements that speaks for it.

`arrangement` chooses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dltools.actions.settings import Settings
from dltools.actions.turn_lengths import MEAN_TURN_S
from dltools.notation.times import MICRO, format_seconds
from dltools.plan.realisation.options import DEFAULT_QUEUE, Mode, QueueParameters

OTHERS = 0.25
"""Share of the CPUs that programs use which are no jobs, from which on no job is paused unasked: a
pause takes nothing from those (ours)."""


@dataclass(frozen=True, slots=True)
class LeverSettings:
    """What brings jobs to their shares of GPUs."""

    notes: Mapping[str, str] = field(default_factory=dict)
    """How each is brought there, by job id."""

    settings: Mapping[str, Settings] = field(default_factory=dict)
    """What each gets for it, by job id."""

    note: str = ""
    """What there is of it, "" for nothing."""


WINS = 0.97
"""The part of the mean in equal parts below which an order wins."""

SHORTEST = "srtf"
"""The policy that orders jobs by what they still need."""

_HELD, _LEAST_HELD_S = 0.02, 2.0
"""For how long a comparison holds, as a part of the mean times that it tells, and at the least (s;
ours)."""

_ADVISED = 0.05
"""For how long it is not looked at anew whether another policy would end jobs sooner, as a part of
the mean time side by side (ours)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The mean times (s) until jobs end: `ordered` (infinity where the order tells no jobs apart,
    or ends the last one too late), in equal `turns` (infinity where they win nothing), and all
    `beside` each other. `wins`: the order
    does. `shortest`: ordered by what jobs still need, infinity where that is not looked at.
    `ends_s`: when jobs of known length end in the best of the first three, by run. `error`: how
    wrong forecasts were lately, None if unknown. `made`: when (microseconds), for these `runs`.
    `advised`: when `shortest` was looked at."""

    ordered: float
    turns: float
    beside: float
    wins: bool = False
    shortest: float = math.inf
    ends_s: Mapping[str, float] = field(default_factory=dict)
    error: float | None = None
    made: int = 0
    runs: tuple[str, ...] = ()
    advised: int = 0

    def holds(self, now: int, runs: tuple[str, ...]) -> bool:
        """Tell whether it need not be made anew for these runs: it is young, for what it tells."""
        times = (self.ordered, self.turns, self.beside)
        holds_s = max(_LEAST_HELD_S, _HELD * min(filter(math.isfinite, times), default=0.0))
        return runs == self.runs and 0 <= now - self.made < round(holds_s * MICRO)

    def outdated(self) -> Comparison:
        """Return it as one that holds no longer; its advice does."""
        return replace(self, made=-sys.maxsize)

    def advises(self, now: int, runs: tuple[str, ...]) -> bool:
        """Tell whether `shortest` need not be looked at anew for these runs: it is advice alone."""
        return runs == self.runs and 0 <= now - self.advised < _ADVISED * self.beside * MICRO

    def left_s(self, now: int) -> dict[str, float]:
        """Return in how many seconds jobs of known length end from a time on, by run."""
        passed_s = (now - self.made) / MICRO
        return {run: max(0.0, end - passed_s) for run, end in self.ends_s.items()}

    def __str__(self) -> str:
        """Say it in words."""
        means = {"in order": self.ordered, "in turns": self.turns, "side by side": self.beside}
        words = [
            f"{name} {format_seconds(mean)}" for name, mean in means.items() if math.isfinite(mean)
        ]
        text = f"{', '.join(words)} on average"
        if self.error is not None:
            text += f" (forecasts were {100 * self.error:.0f} % off)"
        best = self.ordered if self.wins else min(self.turns, self.beside)
        if self.shortest < WINS * best:
            text += f"; {SHORTEST}, shortest first, {format_seconds(self.shortest)}"
        return text


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The mode for a host."""

    mode: Mode
    """How shares become settings."""

    why: str
    """Why this one."""

    quantum_s: float = MEAN_TURN_S
    """The mean length of a turn, as in the options (s)."""

    queue: QueueParameters = DEFAULT_QUEUE
    """The parameters that all policies have, as in the options."""

    is_even: bool = False
    """No job is held back, whatever its share."""

    is_mild: bool = False
    """Weights differ by a factor of four at most, because they may stay for good."""

    levers: LeverSettings = field(default_factory=LeverSettings)
    """The settings of jobs that share GPUs."""

    cpus_left: int = 0
    """The number of CPUs that other jobs leave to jobs that feed GPUs."""

    weights_order: bool = True
    """A job with a far smaller weight takes almost nothing from the first."""

    unable: str = ""
    """Why the mode is not possible, "" where it is."""

    fills: bool = False
    """Each quota is at least a quarter of an equal share, and what a job cannot use goes to the
    others."""

    are_equal: bool = False
    """No job goes before another; all take turns in the queue."""

    compared: Comparison | None = None
    """When jobs that compete for the CPUs are forecast to end. None where no jobs compete, or the
    user has asked for a mode."""

    def mild(self, *, as_asked: bool) -> ModeChoice:
        """Return the choice for settings that may stay for good: nobody is paused, unless that was
        asked for."""
        mode = Mode.PRIORITY if self.mode is Mode.ROTATE and not as_asked else self.mode
        return replace(self, mode=mode, is_mild=True, weights_order=True, cpus_left=0)
