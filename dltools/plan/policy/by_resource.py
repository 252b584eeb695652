"""Asks a policy once for each resource: the CPUs, and each set of devices that jobs share.

Progress per CPU second cannot be compared with progress per second of a device, and jobs on
different devices take nothing from each other. So a policy that compares efforts, or gives servers
what their targets ask for, decides once for the jobs that use no device, as if they were alone on
the CPUs, and once for each group of jobs that share devices. The rule is ours.
"""

from __future__ import annotations

from collections.abc import Iterable
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


def decide(policy: Policy, cluster: Cluster, parameters: Any, state: State) -> Decision:
    """Decide a round of a policy. A policy that compares efforts, or has servers, is asked once for
    each resource of the host."""
    host, required = cluster.host, policy.requirements(parameters)
    is_apart = required.efforts or required.servers
    if not is_apart or not any(job.use.resource.is_device for job in host.jobs):
        return policy.decide(cluster, parameters, state)
    return decide_apart(policy, cluster, parameters, state, _parts(host))


def decide_apart(
    policy: Policy, cluster: Cluster, parameters: Any, state: State, parts: Iterable[HostState]
) -> Decision:
    """Return the decisions of a policy for parts of a host as one."""
    host = cluster.host
    decisions = [
        policy.decide(replace(cluster, hosts={host.name: part}), parameters, state)
        for part in parts
    ]
    allocations = {key: value for part in decisions for key, value in part.allocations.items()}
    changes = {part.interval_change for part in decisions}
    change = min(changes) if len(changes) == 1 else IntervalChange.KEEP
    kept = {key: value for part in decisions for key, value in part.state.items()}
    if host.name in kept:
        of_parts = (part.state.get(host.name) or {} for part in decisions)
        kept[host.name] = {run: value for part in of_parts for run, value in part.items()}
    return Decision(
        {job.id: allocations[job.id] for job in host.jobs if job.id in allocations},
        kept,
        IntervalChange.RESET if IntervalChange.RESET in changes else change,
        tuple(action for part in decisions for action in part.actions),
        "; ".join(dict.fromkeys(part.gain for part in decisions if part.gain)),
    )


def sharing_devices(jobs: Iterable[Job]) -> list[list[Job]]:
    """Return groups of the containers that hold devices. Two containers are in one group if they
    share a device, or if a chain of shared ones connects them."""
    groups: list[tuple[set[str], list[Job]]] = []
    for job in jobs:
        held, joined = set(job.use.gpus), [job]
        if not held:
            continue
        apart = []
        for group in groups:
            if held & group[0]:
                held, joined = held | group[0], group[1] + joined
            else:
                apart.append(group)
        groups = [*apart, (held, joined)]
    return [joined for _, joined in groups]


def _parts(host: HostState) -> list[HostState]:
    """Return the host once for each resource: with the jobs on CPUs, if there are any, then with
    the jobs on each set of devices. The size of the latter (`cpus`) is the number of devices."""
    on_cpus = [job for job in host.jobs if not job.use.resource.is_device]
    others = [job for job in host.jobs if job.use.resource.is_device]
    parts = [host.part(host.cpus, on_cpus)] if on_cpus else []
    for jobs in (*sharing_devices(others), *([job] for job in others if not job.use.gpus)):
        held = {device for job in jobs for device in job.use.gpus}
        parts.append(host.part(float(len(held) or 1), jobs))
    return parts
