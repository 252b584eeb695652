"""What a search for the best policy tries: policies, realisations and a few parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from dltools.plan.policy import registry
from dltools.plan.policy.base import Policy
from dltools.plan.policy.parameters import build, describe, worth_trying
from dltools.plan.realisation.mode import Mode

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
        """The dl-plan command that does the same."""
        sets = "".join(f" --set {assignment}" for assignment in self.assignments)
        return f"dl-plan --policy {self.policy} --realize {self.mode}{sets}"


def candidates() -> Iterator[Candidate]:
    """Yield what is tried; the first changes nothing."""
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
