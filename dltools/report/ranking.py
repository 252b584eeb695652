"""Which of several candidates is best by a criterion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dltools.observations.outcomes import Summary, summarise
from dltools.report.comparison import Runs, means, ratio


@dataclass(frozen=True, slots=True)
class Criterion:
    """What is compared: a field of `Summary`, and whether more of it is better."""

    field: str
    more_is_better: bool = False

    def score(self, summary: Summary) -> float:
        """Return what a run is worth: less is better. Infinity for a run that did not end, or that
        does not have the field."""
        value: float = getattr(summary, self.field)
        if math.isnan(value) or summary.unfinished:
            return math.inf
        return -value if self.more_is_better else value


CRITERIA = {
    "mean_completion": Criterion("mean_completion"),
    "makespan": Criterion("makespan"),
    "time_to_target": Criterion("time_to_first"),
    "satisfied": Criterion("satisfied", more_is_better=True),
}
"""The criteria by name."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried: a policy with its realisation and settings, the dl-plan command that does the
    same, and its runs."""

    policy: str
    realize: str
    assignments: Sequence[str]
    command: str
    runs: Runs

    def score(self, criterion: Criterion) -> float:
        """Return the mean of what its runs are worth."""
        scores = [criterion.score(summarise(results)) for results in self.runs]
        return math.fsum(scores) / len(scores)


def ranked(trials: Sequence[Trial], criterion: Criterion) -> list[dict[str, Any]]:
    """Return a row per trial, the best first, with its ratio to the first trial; [] where no run
    has what the criterion compares."""
    scores = [trial.score(criterion) for trial in trials]
    if all(map(math.isinf, scores)):
        return []
    base = means(trials[0].runs)[criterion.field]
    order = sorted(range(len(trials)), key=lambda place: (scores[place], place))
    return [_row(trials[place], criterion, base) for place in order]


def _row(trial: Trial, criterion: Criterion, base: float | None) -> dict[str, Any]:
    found = means(trial.runs)
    return {
        "policy": trial.policy, "realize": trial.realize, "set": " ".join(trial.assignments),
        **found, f"{criterion.field}_ratio": ratio(found[criterion.field], base),
        "command": trial.command,
    }  # fmt: skip
