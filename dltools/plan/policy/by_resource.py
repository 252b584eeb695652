"""Asks a policy once for each resource: the CPUs, and each set of GPUs that jobs share.

Progress per CPU second cannot be compared with progress per GPU second, and jobs on different GPUs
take nothing from each other. So a policy that compares efforts, or gives servers what their targets
ask for, decides once for the jobs that use no GPU, as if they were alone on the CPUs, and once for
each group of jobs that share GPUs. The rule is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dltools.plan.policy.interface import (
    Cluster,
    Decision,
    HostState,
    IntervalChange,
    Policy,
    State,
)
from dltools.plan.signals.job import Job

_NO_GAIN = "none predicted: all jobs are on GPUs"


def decide(policy: Policy, cluster: Cluster, parameters: Any, state: State) -> Decision:
    """Decide a round of a policy. A policy that compares efforts, or has servers, is asked once for
    each resource of the host."""
    host, required = cluster.host, policy.requirements(parameters)
    is_apart = required.efforts or required.servers
    if not is_apart or not any(job.use.uses_gpu for job in host.jobs):
        return policy.decide(cluster, parameters, state)
    parts = [
        policy.decide(replace(cluster, hosts={host.name: one}), parameters, state)
        for one in _parts(host)
    ]
    allocations = {key: one for part in parts for key, one in part.allocations.items()}
    changes = {part.interval_change for part in parts}
    change = changes.pop() if len(changes) == 1 else IntervalChange.KEEP
    gains = [part.gain for part in parts if part.gain]
    if required.efforts:
        gains = [_NO_GAIN if all(job.use.uses_gpu for job in host.jobs) else parts[0].gain]
    return Decision(
        {job.id: allocations[job.id] for job in host.jobs if job.id in allocations},
        joined_state(host.name, parts),
        IntervalChange.RESET if IntervalChange.RESET in changes else change,
        tuple(action for part in parts for action in part.actions),
        "; ".join(gains),
    )


def sharing_gpus(jobs: Iterable[Job]) -> list[list[Job]]:
    """Return groups of the containers that hold GPUs. Two containers are in one group if they share
    a GPU, or if a chain of shared GPUs connects them."""
    groups: list[tuple[set[str], list[Job]]] = []
    for job in jobs:
        gpus, joined = set(job.use.gpus), [job]
        if not gpus:
            continue
        apart = []
        for group in groups:
            if gpus & group[0]:
                gpus, joined = gpus | group[0], group[1] + joined
            else:
                apart.append(group)
        groups = [*apart, (gpus, joined)]
    return [joined for _, joined in groups]


def _parts(host: HostState) -> list[HostState]:
    """Return the host once for each resource: with the jobs on CPUs, if there are any, then with
    the jobs on each set of GPUs. The size of the latter (`cpus`) is the number of GPUs."""
    on_cpus = [job for job in host.jobs if not job.use.uses_gpu]
    on_gpus = [job for job in host.jobs if job.use.uses_gpu]
    groups = [*sharing_gpus(on_gpus), *([job] for job in on_gpus if not job.use.gpus)]
    sizes = [len({gpu for job in jobs for gpu in job.use.gpus}) or 1 for jobs in groups]
    parts = [(host.cpus, on_cpus)] if on_cpus else []
    return [
        _part(host, size, jobs)
        for size, jobs in (*parts, *zip(map(float, sizes), groups, strict=True))
    ]


def _part(host: HostState, size: float, jobs: Sequence[Job]) -> HostState:
    ids = {job.id for job in jobs}
    order = tuple(job for job in host.jobs if job.id in ids)
    previous = {key: one for key, one in host.previous.items() if key in ids}
    return replace(host, cpus=size, jobs=order, previous=previous)


def joined_state(host: str, parts: Sequence[Decision]) -> State:
    """Return one state for a host from the decisions of a policy on parts of it. Mappings are
    merged, lists of runs are joined and sorted."""
    found = {key: value for part in parts for key, value in part.state.items()}
    kept = [part.state[host] for part in parts if host in part.state]
    if kept and all(isinstance(one, dict) for one in kept):
        found[host] = {key: value for one in kept for key, value in one.items()}
    elif kept and all(isinstance(one, list) for one in kept):
        found[host] = sorted({value for one in kept for value in one})
    return found
