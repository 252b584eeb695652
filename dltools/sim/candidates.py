"""What to try when it is asked which policy is best: policies, settings and a few parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from dltools.observations.outcomes import Summary, summarise
from dltools.plan.policy import registry
from dltools.plan.policy.base import Policy
from dltools.plan.policy.parameters import build, describe, worth_trying
from dltools.plan.realisation.mode import Mode
from dltools.report.comparison import Runs, means, ratio

CRITERIA = {
    "mean_completion": ("mean_completion", False),
    "makespan": ("makespan", False),
    "time_to_target": ("time_to_first", False),
    "satisfied": ("satisfied", True),
}
"""What can be best: the summary's field, and whether more is better."""

_MODES = (Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE, Mode.QUOTA)
_INTERVALS = ("10", "30")
_BASELINE = "noop"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy with its settings."""

    policy: str
    mode: str
    assignments: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The dl-plan that does it."""
        sets = "".join(f" --set {assignment}" for assignment in self.assignments)
        return f"dl-plan --policy {self.policy} --realize {self.mode}{sets}"


def candidates() -> Iterator[Candidate]:
    """Yield what there is to try; the first changes nothing."""
    own = registry.policies([])
    yield from _candidates(own.pop(_BASELINE))
    for policy in own.values():
        yield from _candidates(policy)


def _candidates(policy: Policy) -> Iterator[Candidate]:
    has_interval = any(p["name"] == "itval" for p in describe(policy.parameters))
    intervals = [(f"itval={seconds}",) for seconds in _INTERVALS] if has_interval else [()]
    extras = [(), *((extra,) for extra in worth_trying(policy.parameters))]
    for mode, interval, extra in product(_MODES, intervals, extras):
        assignments = (*interval, *extra)
        if mode is _MODES[0] or _gives_shares(policy, assignments):
            yield Candidate(policy.name, mode.value, assignments)


def _gives_shares(policy: Policy, assignments: tuple[str, ...]) -> bool:
    given = dict(assignment.split("=") for assignment in assignments)
    return policy.requirements(build(policy.parameters, given)).shares


def score(summary: Summary, criterion: str) -> float:
    """Return what a run is worth: less is better; infinity where it says nothing or never ended."""
    name, more = CRITERIA[criterion]
    value: float = getattr(summary, name)
    if value != value or summary.unfinished:
        return float("inf")
    return -value if more else value


def ranked(
    tried: Sequence[Candidate], runs: Sequence[Runs], criterion: str
) -> list[dict[str, Any]]:
    """Return a row per candidate, the best first, with the dl-plan command that does it and its
    ratio to the first candidate; [] where no run says anything by this criterion."""
    field = CRITERIA[criterion][0]
    entries = []
    for place, (one, repeats) in enumerate(zip(tried, runs, strict=True)):
        worths = [score(summarise(results), criterion) for results in repeats]
        entries.append((math.fsum(worths) / len(worths), place, one, means(repeats)))
    if all(math.isinf(worth) for worth, *_ in entries):
        return []
    base = entries[0][3][field]
    return [
        {"policy": one.policy, "realize": one.mode, "set": " ".join(one.assignments), **found,
         f"{field}_ratio": ratio(found[field], base), "command": one.command}
        for _, _, one, found in sorted(entries, key=lambda entry: entry[:2])
    ]  # fmt: skip
