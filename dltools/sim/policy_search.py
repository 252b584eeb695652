"""The candidates of `dl-sim --best`: policies with realisations and a few parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from dltools.plan.policy import registry
from dltools.plan.policy.interface import Policy, Requirements
from dltools.plan.policy.parameters import build, describe, worth_trying
from dltools.plan.realisation.mode import Mode

_MODES = (Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE, Mode.QUOTA)
_INTERVALS = ("10", "30")
_BASELINE = "noop"
_SIMPLEST = (_BASELINE, "fair")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy with its mode and parameters.

    `complexity` orders candidates, the simplest first: noop, fair, policies that look at one host,
    policies that look at several; among equals, the one with fewer parameters.
    """

    policy: str
    mode: str
    assignments: tuple[str, ...] = ()
    complexity: int = 0

    @property
    def command(self) -> str:
        """The dl-plan command that does the same."""
        sets = "".join(f" --set {assignment}" for assignment in self.assignments)
        return f"dl-plan --policy {self.policy} --realize {self.mode}{sets}"


def candidates() -> Iterator[Candidate]:
    """Yield the candidates. The first one changes nothing."""
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
            complexity = 10 * _rank(policy, assignments) + len(extra)
            yield Candidate(policy.name, mode.value, assignments, complexity)


def _rank(policy: Policy, assignments: tuple[str, ...]) -> int:
    if policy.name in _SIMPLEST:
        return _SIMPLEST.index(policy.name)
    looks_at_others = _requirements(policy, assignments).cluster
    return len(_SIMPLEST) + looks_at_others


def _gives_shares(policy: Policy, assignments: tuple[str, ...]) -> bool:
    return _requirements(policy, assignments).shares


def _requirements(policy: Policy, assignments: tuple[str, ...]) -> Requirements:
    given = dict(assignment.split("=") for assignment in assignments)
    return policy.requirements(build(policy.parameters, given))
