"""What was decided for each container, and the plan's actions that bring it about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dltools.notation.limits import LIMITS, differs, only
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.outcome.records import Action, Op
from dltools.plan.policy.interface import ActionKind, Allocation
from dltools.plan.realisation.settings import LEAST_CPUS, Settings, Turn, as_found, present_settings
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import Member

_OPS = {ActionKind.MIGRATE: Op.MIGRATE, ActionKind.DELIVER: Op.DELIVER}

Realised = Mapping[str, Realisation]
"""Realisations by host name."""


_LEFT_ALONE = ", left alone"
_RANK = re.compile(r"\d+ of \d+")


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What was decided for one container.

    `setting`: what it is to get, None where nothing changes; `present`: what is in force; `reason`:
    that of the action. `job`: the job that the container makes with others, None for one that is
    alone. `role`: what the container is, and what shows it. `user`: whose job it is, "" where
    nothing says so. `ends_s`: in how many seconds it is forecast to end, None if unknown.
    """

    host: str
    container_id: str
    name: str
    allocation: Allocation
    present: Settings
    setting: Settings | None
    reason: str
    job: str | None = None
    role: str = ""
    user: str = ""
    ends_s: float | None = None

    @property
    def in_short(self) -> str:
        """The explanation, what says most in front: a job's place in line, and what it is doing;
        then the numbers behind it, then what it is."""
        if self.reason.startswith(self.role):
            return self.reason.removesuffix(_LEFT_ALONE)
        first, *more = self.allocation.reason.split("; ")
        head, _, numbers = first.partition(": ")
        notes = self.reason.removeprefix(self.allocation.reason).removeprefix("; ")
        if notes and _RANK.fullmatch(head):
            head = ""
        return "; ".join(filter(None, (notes, head, numbers, *more, self.role)))

    @property
    def job_class(self) -> str:
        """The job's class, - where it has none."""
        return self.allocation.job_class


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decisions, and lines below them: what the plan is expected to bring, how shares become
    settings, and advice. `nothing`: why there is nothing to do, "" where there is."""

    decisions: list[JobDecision]
    lines: list[str]
    nothing: str = ""


def decisions(hosts: Iterable[HostHistory], realised: Realised) -> Iterator[JobDecision]:
    """Yield the decision for each container of each host, by name."""
    for host in hosts:
        found = realised[host.name]
        for container in sorted(host.containers.values(), key=lambda one: (one.name, one.id)):
            for one in container.containers:
                yield _decision(host, container, one, found)


def _decision(
    host: HostHistory, container: ContainerHistory, one: Member, found: Realisation
) -> JobDecision:
    """Return the decision for `one`, the container itself or a member of its job."""
    present = present_settings(one.in_force, host.cpus, host.cpuset)
    allocation = host.allocations.get(container.id)
    setting = _part(container, found.settings.get(container.id))
    if setting is not None:
        limits, turn = _apart(setting)
        setting = {**limits, **turn} if differs(limits, present, host.cpus) else turn or None
    note, role = found.notes.get(container.id, ""), container.standing.judgement.text
    if allocation is None:
        is_job = container.id in found.settings and note
        why = f"{role}; {note}" if is_job else _left_alone(container)
        allocation, note = Allocation(None, "-", why), ""
    job, members, _ = container.membership
    notes = (
        allocation.reason,
        note,
        f"one of {len(members)} containers of the job {job}" if members else "",
        *container.progress.targets.faults,
    )
    reason = "; ".join(note for note in notes if note)
    return JobDecision(
        host.name,
        one.id,
        one.name,
        allocation,
        present,
        setting,
        reason,
        job if members else None,
        role,
        container.user,
        found.ends_s.get(container.run_id),
    )


def _left_alone(container: ContainerHistory) -> str:
    why = ", as no label of its owner asks for more" if container.standing.is_left_alone else ""
    what = ", protected" if container.standing.protected else f"{_LEFT_ALONE}{why}"
    return f"{container.standing.judgement.text}{what}"


def _part(job: ContainerHistory, setting: Settings | None) -> Settings | None:
    """Return what each container of a job gets of its setting: an equal part of its quota."""
    quota = setting.get("cpus") if setting else None
    if setting is None or quota is None or not job.membership.members:
        return setting
    return {**setting, "cpus": round(max(LEAST_CPUS, quota / len(job.membership.members)), 3)}


def _apart(setting: Settings) -> tuple[Settings, Settings]:
    """Return the limits of a setting, and its turn."""
    return only(setting, LIMITS), only(setting, Turn.__annotations__)


def _steps(one: JobDecision) -> Iterator[tuple[Op, Settings]]:
    """Yield what an action brings about each: limits first, then a turn."""
    limits, turn = _apart(one.setting or {})
    if limits:
        yield Op.UPDATE, limits
    if turn:
        yield Op.ROTATE, turn


def actions(hosts: Iterable[HostHistory], realised: Realised) -> tuple[Action, ...]:
    """Return a plan's actions: settings that change, then what is done once."""
    hosts = list(hosts)
    found: list[Action] = []
    for one in decisions(hosts, realised):
        for op, setting in _steps(one):
            seen: Mapping[str, object] = one.present
            expect = as_found({name: seen[name] for name in setting if name in seen})
            found.append(
                Action(
                    len(found) + 1,
                    op,
                    one.host,
                    one.container_id,
                    one.name,
                    setting,
                    expect if op is Op.UPDATE else {},
                    one.reason,
                    job=one.job,
                    user=one.user or None,
                )
            )
    for host in hosts:
        for action in host.actions:
            known = host.containers.get(action.job_id)
            if known is not None:
                job = known.containers[0]
                found.append(
                    Action(
                        len(found) + 1,
                        _OPS[action.kind],
                        host.name,
                        job.id,
                        job.name,
                        {},
                        {},
                        action.reason,
                        action.to or None,
                        action.met,
                    )
                )
    return tuple(found)


def covered(hosts: Iterable[HostHistory]) -> tuple[str, ...]:
    """Return the ids of all containers that were decided on, and of those that stay as they are."""
    jobs = (job for host in hosts for job in host.containers.values())
    return tuple(sorted(one.id for job in jobs for one in job.containers))


def classes(hosts: Iterable[HostHistory]) -> dict[str, dict[str, str]]:
    """Return the class of each job that has one, by its name, for each host."""
    found = {
        host.name: {
            one.name: allocation.job_class
            for key, allocation in host.allocations.items()
            if key in host.containers
            for one in host.containers[key].containers
        }
        for host in hosts
    }
    return {name: dict(sorted(jobs.items())) for name, jobs in found.items() if jobs}


def gain(hosts: Iterable[HostHistory]) -> str:
    """Return what the last rounds are expected to bring, in one line."""
    gains = {host.name: host.gain for host in hosts if host.gain}
    if len(gains) == 1:
        return next(iter(gains.values()))
    return "; ".join(f"{name}: {gain}" for name, gain in gains.items())


def modes(realised: Realised) -> dict[str, str]:
    """Return the plan's parameters that say how shares became settings on all hosts, and why."""
    decided = [found for found in realised.values() if found.settings or found.unable]
    names = sorted({found.mode.value for found in decided})
    whys = sorted({found.why for found in decided})
    return {"realize": "+".join(names), "realize_why": "; ".join(whys)} if names else {}
