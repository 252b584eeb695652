"""FlowCon: elastic CPU limits on one node, by growth efficiency.

Zheng, Tynes, Gorelick, Mao, Cheng, Hou: FlowCon: Elastic Flow Configuration for Containerized
Deep Learning Applications, ICPP 2019. Classes, transitions, limits, back-off and listeners follow
the authors' published code, with these exceptions, which are ours: a job whose growth is unknown
keeps its class and limit instead of counting as converged; limits are not truncated to whole CPUs;
`signed`, `backoff=false` and `itval_max` are additions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dltools.policy import rounds
from dltools.policy.base import Cluster, Decision, Grant, Node, State
from dltools.policy.parameters import parameter
from dltools.policy.signals import Growth, growth

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
        960.0,
        "longest interval (s) that the back-off reaches",
        low=0.1,
        high=86400.0,
        source="ours",
    )
    signed: bool = parameter(False, "count only change for the better as growth", source="ours")


@dataclass(frozen=True, slots=True)
class _Job:
    """What is remembered of a job: its class, the share last given, and why."""

    job_class: str
    share: float | None
    reason: str


class FlowCon:
    """The policy object; it holds no state of its own."""

    name = "flowcon"
    help = "elastic CPU limits by growth efficiency: completing jobs make room (FlowCon, ICPP 2019)"
    parameters = Parameters

    def horizon_s(self, parameters: Parameters, state: State) -> float:
        """Two intervals of the longest in force on any host."""
        longest = max((host["rounds"]["itval_s"] for host in state.values()), default=0.0)
        return 2 * max(parameters.itval, longest)

    def decide(self, cluster: Cluster, parameters: Parameters, state: State) -> Decision:
        """Run a round if one is due, else repeat the last decision."""
        node = cluster.nodes[cluster.ticked]
        saved: dict[str, Any] = dict(state.get(node.host) or {})
        when = rounds.from_json(saved.get("rounds"), parameters.itval)
        jobs = _recall(saved.get("jobs") or {}, node, when)
        when = when.listen(node.jobs, parameters.itval)
        if when.due(cluster.now) and node.jobs:
            jobs = _round(node, jobs, cluster.now, when.itval_s, parameters)
            when = when.ran(cluster.now)
            if parameters.backoff and all(j.job_class == COMPLETING for j in jobs.values()):
                when = when.backed_off(parameters.itval_max)
        kept = {
            "rounds": when.to_json(),
            "jobs": {key: [j.job_class, j.share, j.reason] for key, j in sorted(jobs.items())},
        }
        return Decision(
            grants={key: Grant(j.share, j.job_class, j.reason) for key, j in jobs.items()},
            state={**state, node.host: kept},
            next_s=when.wait_s(cluster.now) if node.jobs else parameters.itval,
        )


FLOWCON = FlowCon()


def _recall(saved: dict[str, Any], node: Node, when: rounds.Rounds) -> dict[str, _Job]:
    """Return what is known of the node's jobs; newcomers, restarted ones too, begin as NL."""
    jobs = {}
    for job in node.jobs:
        old = saved.get(job.id) if rounds.member(job) in when.members else None
        jobs[job.id] = _Job(*old) if old else _Job(NEW, None, "new")
    return jobs


def _round(
    node: Node,
    jobs: dict[str, _Job],
    now: int,
    itval_s: float,
    parameters: Parameters,
) -> dict[str, _Job]:
    growths = {
        job.id: growth(job, now, itval_s, node.cpus, signed=parameters.signed) for job in node.jobs
    }
    classes = {
        key: transition(jobs[key].job_class, found.efficiency, parameters.alpha)
        for key, found in growths.items()
    }
    if all(job_class == COMPLETING for job_class in classes.values()):
        return {
            key: _Job(COMPLETING, 1.0, f"all completing: limits off; {_numbers(growths[key])}")
            for key in classes
        }
    total = math.fsum(g.efficiency for g in growths.values() if g.efficiency is not None)
    after = {}
    for key, job_class in classes.items():
        found = growths[key]
        share = limit(job_class, found.efficiency, total, len(classes))
        reason = _reason(jobs[key].job_class, job_class, found, parameters.alpha, share)
        if share is None:
            share = jobs[key].share
        after[key] = _Job(job_class, share, reason)
    return after


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
