"""FlowCon: elastic CPU limits on one node, by growth efficiency.

Zheng, Tynes, Gorelick, Mao, Cheng, Hou: FlowCon: Elastic Flow Configuration for Containerized
Deep Learning Applications, ICPP 2019. Classes, transitions, limits, back-off and listeners follow
the authors' published code, with these exceptions, which are ours: a job whose growth is unknown
keeps its class and limit instead of counting as converged; limits are not truncated to whole CPUs;
`signed`, `backoff=false` and `itval_max` are additions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dltools.policy.base import Cluster, Decision, Grant, Needs, Pace, State
from dltools.policy.parameters import parameter
from dltools.policy.signals import Growth, growth, signal_of

NEW, WATCHING, COMPLETING = "NL", "WL", "CL"
_WORDS = {NEW: "growing", WATCHING: "watching", COMPLETING: "completing"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """FlowCon's parameters."""

    alpha: float = parameter(
        0.03, "growth efficiency (1/s) under which a job is slow", high=1.0, source="paper"
    )
    itval: float = parameter(
        30.0, "seconds between two rounds", low=0.1, high=86400.0, source="paper"
    )
    backoff: bool = parameter(
        True, "double the interval while every job is completing", source="paper"
    )
    itval_max: float = parameter(
        480.0,
        "longest interval (s) that the back-off reaches",
        low=0.1,
        high=86400.0,
        source="ours",
    )
    signed: bool = parameter(False, "count only change for the better as growth", source="ours")


class FlowCon:
    """The policy object; it holds no state of its own."""

    name = "flowcon"
    help = "elastic CPU limits by growth efficiency: completing jobs make room (FlowCon, ICPP 2019)"
    parameters = Parameters

    def needs(self, parameters: Parameters) -> Needs:
        """Two windows of the interval, which backs off."""
        longest = parameters.itval_max if parameters.backoff else parameters.itval
        return Needs(parameters.itval, longest, windows=2)

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Classify every job by its growth efficiency, and limit it by its class."""
        node = cluster.node
        growths = {
            job.id: growth(job, cluster.now, cluster.itval_s, node.cpus, signed=parameters.signed)
            for job in node.jobs
        }
        before = {key: node.last[key].job_class if key in node.last else NEW for key in growths}
        classes = {
            key: transition(before[key], found.efficiency, parameters.alpha)
            for key, found in growths.items()
        }
        if all(job_class == COMPLETING for job_class in classes.values()):
            grants = {
                key: Grant(1.0, COMPLETING, f"all completing: limits off; {_numbers(found)}",
                           signal_of(found))
                for key, found in growths.items()
            }  # fmt: skip
            return Decision(grants, state, Pace.DOUBLE, gain="none: every job is completing")
        total = math.fsum(g.efficiency for g in growths.values() if g.efficiency is not None)
        grants = {}
        for key, job_class in classes.items():
            found = growths[key]
            share = limit(job_class, found.efficiency, total, len(classes))
            reason = _reason(before[key], job_class, found, parameters.alpha, share)
            if share is None and key in node.last:
                share = node.last[key].share
            grants[key] = Grant(share, job_class, reason, signal_of(found))
        return Decision(grants, state, gain=_gain(grants))


FLOWCON = FlowCon()


def _gain(grants: Mapping[str, Grant]) -> str:
    """Say how much of the node the growing jobs get, against equal shares."""
    growing = [grant for grant in grants.values() if grant.job_class == NEW]
    if not growing or len(growing) == len(grants):
        return "none yet: no job makes room for another"
    shares = math.fsum(grant.share or 1 / len(grants) for grant in growing)
    equal = len(growing) / len(grants)
    return (f"{len(growing)} growing of {len(grants)} jobs get {min(1.0, shares):.0%} of the node, "
            f"{equal:.0%} in free competition")  # fmt: skip


def transition(job_class: str, efficiency: float | None, alpha: float) -> str:
    """Return a job's next class; an unknown growth efficiency changes nothing."""
    if efficiency is None:
        return job_class
    if efficiency >= alpha:
        return NEW
    return {NEW: WATCHING, WATCHING: COMPLETING, COMPLETING: COMPLETING}[job_class]


def limit(job_class: str, efficiency: float | None, total: float, n: int) -> float | None:
    """Return a job's share of the node, or None to keep what it has.

    With S = `total` and beta = 1 + 1/n: CL gets max(G/S, 1/(beta n)), NL min(G/S, 1); WL keeps
    its limit, as do all where S is 0.
    """
    if efficiency is None or total <= 0 or job_class == WATCHING:
        return None
    part = efficiency / total
    if job_class == COMPLETING:
        beta = 1 + 1 / n
        return max(part, 1 / (beta * n))
    return min(part, 1.0)


def _reason(before: str, after: str, found: Growth, alpha: float, share: float | None) -> str:
    word = _WORDS[after]
    if found.efficiency is None:
        return f"{word}: growth efficiency unknown ({found.note}); limit kept"
    relation = "<" if found.efficiency < alpha else ">="
    moved = f" ({before} to {after})" if before != after else ""
    kept = "; limit kept" if share is None else ""
    return f"{word}{moved}: {_numbers(found)} {relation} alpha {alpha:g}{kept}"


def _numbers(found: Growth) -> str:
    if found.efficiency is None:
        return f"growth efficiency unknown ({found.note})"
    note = f" ({found.note})" if found.note else ""
    return f"growth efficiency {found.efficiency:.3g} of {found.metric}{note}"
