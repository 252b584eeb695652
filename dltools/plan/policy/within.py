"""Placement and limits in one plan: a policy that shares the CPUs of each host within a cluster.

Where both want something else of a job, placement goes first, and the reason says so (ours).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from dltools.plan.policy.base import Allocation, Cluster, Policy, State
from dltools.plan.policy.by_resource import decide
from dltools.plan.policy.flowcon import FLOWCON
from dltools.plan.policy.slaq import SLAQ
from dltools.plan.policy.srtf import SRTF


@dataclass(frozen=True, slots=True)
class Shared:
    """What a host gives its jobs, by job id: allocations, notes for the reasons, and what the
    policy within the host has to remember."""

    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    memory: State = field(default_factory=dict)


_POLICIES: Mapping[str, Policy] = {"flowcon": FLOWCON, "srtf": SRTF, "slaq": SLAQ}


def share_within(cluster: Cluster, name: str, leaving: Collection[str], saved: State) -> Shared:
    """Return what the policy of a name ("none": no policy) gives the jobs of the host sampled last.

    `leaving`: ids of jobs that are to migrate. Such a job gets no limit, so that it writes its
    checkpoint soon and takes no limit with it, and the others share the host without it.
    """
    policy, host = _POLICIES.get(name), cluster.host
    if policy is None:
        return Shared()
    classes = (saved.get("classes") or {}).get(host.name, {})
    staying = replace(
        host,
        jobs=tuple(job for job in host.jobs if job.id not in leaving),
        previous={
            key: replace(one, job_class=classes[key])
            for key, one in host.previous.items()
            if key in classes
        },
    )
    alone = replace(cluster, hosts={host.name: staying})
    decision = decide(policy, alone, policy.parameters(), saved.get("memory") or {})
    gone = Allocation(1 / max(1, len(host.jobs)), "-", "", unlimited=True)
    notes = {key: f"within: {one.reason}" for key, one in decision.allocations.items()}
    notes |= dict.fromkeys(
        leaving,
        "it is to leave: no limit, so that it writes its checkpoint "
        "soon; the others share the host",
    )
    kept = {key: one.job_class for key, one in decision.allocations.items()}
    return Shared(
        {**decision.allocations, **dict.fromkeys(leaving, gone)},
        notes,
        {"classes": {**(saved.get("classes") or {}), host.name: kept}, "memory": decision.state},
    )
