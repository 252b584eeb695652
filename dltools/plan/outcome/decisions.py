"""What was decided for each container, and the plan's actions that bring it about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from dltools.actions.plans import Action, Op
from dltools.actions.settings import Settings, TurnSettings, as_found
from dltools.notation.limits import LEAST_CPUS, LIMITS, differs, only
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.policy.interface import Allocation
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import Member, present_settings

Realised = Mapping[str, Realisation]
"""Realisations by host name."""


_LEFT_ALONE = ", left alone"
_RANK = re.compile(r"\d+ of \d+")


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What was decided for one container."""

    host: str
    """The name of its host."""

    container_id: str
    """The engine's id."""

    name: str
    """The name of the container."""

    allocation: Allocation
    """What the policy gave its job, without a share where it gave nothing."""

    present: Settings
    """The settings in force."""

    setting: Settings | None
    """What it is to get, None where nothing changes."""

    reason: str
    """That of the action."""

    job: str | None = None
    """The job that the container makes with others, None for one that is alone."""

    role: str = ""
    """What the container is, and what shows it."""

    user: str | None = None
    """Whose job it is, None where nothing says so."""

    ends_s: float | None = None
    """In how many seconds it is forecast to end, None if unknown."""

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
    """What a plan decides, for people."""

    decisions: list[JobDecision]
    """A decision for each container."""

    lines: list[str]
    """What the plan is expected to bring, how shares become settings, and advice."""

    nothing: str = ""
    """Why there is nothing to do, "" where there is."""


def decisions(hosts: Iterable[HostHistory], realised: Realised) -> Iterator[JobDecision]:
    """Yield the decision for each container of each host, by name."""
    for host in hosts:
        realisation = realised[host.name]
        for container in sorted(host.containers.values(), key=lambda job: (job.name, job.id)):
            for member in container.containers:
                yield _decision(host, container, member, realisation)


def _decision(
    host: HostHistory, container: ContainerHistory, member: Member, realisation: Realisation
) -> JobDecision:
    """Return the decision for `member`, the container itself or a member of its job."""
    present = present_settings(member.in_force, host.cpus, host.cpuset)
    allocation = host.decision.allocations.get(container.id)
    setting = _part(container, realisation.settings.get(container.id))
    if not differs(only(setting, LIMITS), present, host.cpus):
        setting = _turn(setting)
    note, role = realisation.notes.get(container.id, ""), container.standing.judgement.text
    if allocation is None:
        is_job = container.id in realisation.settings and note
        why = f"{role}; {note}" if is_job else _left_alone(container)
        allocation, note = Allocation(None, "-", why), ""
    job, members, _ = container.membership
    of_several = f"one of {len(members)} containers of the job {job}" if members else ""
    notes = (allocation.reason, note, of_several, *container.progress.targets.faults)
    return JobDecision(
        host.name,
        member.id,
        member.name,
        allocation,
        present,
        setting or None,
        reason="; ".join(filter(None, notes)),
        job=job if members else None,
        role=role,
        user=container.user or None,
        ends_s=realisation.ends_s.get(container.run_id),
    )


def _left_alone(container: ContainerHistory) -> str:
    why = ", as no label of its owner asks for more" if container.standing.is_left_alone else ""
    what = ", protected" if container.standing.protected else f"{_LEFT_ALONE}{why}"
    return f"{container.standing.judgement.text}{what}"


def _part(job: ContainerHistory, setting: Settings | None) -> Settings:
    """Return what each container of a job gets of its setting: an equal part of its quota."""
    quota = setting.get("cpus") if setting else None
    if setting is None or quota is None or not job.membership.members:
        return setting or {}
    return {**setting, "cpus": round(max(LEAST_CPUS, quota / len(job.membership.members)), 3)}


def actions(hosts: Iterable[HostHistory], decided: Iterable[JobDecision]) -> tuple[Action, ...]:
    """Return a plan's actions: settings that change, then what is done once."""
    planned = [action for decision in decided for action in _changes(decision)]
    planned += [action for host in hosts for action in _orders(host)]
    return tuple(replace(action, id=number) for number, action in enumerate(planned, 1))


def _changes(decision: JobDecision) -> Iterator[Action]:
    """Yield what an action brings about each: limits first, then a turn."""
    setting, seen = decision.setting or {}, cast(Mapping[str, object], decision.present)
    place = decision.host, decision.container_id, decision.name
    whose = decision.job, decision.user
    if limits := only(setting, LIMITS):
        expect = as_found({name: seen[name] for name in limits if name in seen})
        yield Action(0, Op.UPDATE, *place, limits, expect, decision.reason, None, None, *whose)
    if turn := _turn(setting):
        yield Action(0, Op.ROTATE, *place, turn, {}, decision.reason, None, None, *whose)


def _turn(setting: Settings) -> Settings:
    return only(setting, TurnSettings.__annotations__)


def _orders(host: HostHistory) -> Iterator[Action]:
    """Yield what a policy has ordered for jobs that still run."""
    for order in host.decision.actions:
        if container := host.containers.get(order.job_id):
            job, op = container.containers[0], Op(order.kind.value)
            what = (order.reason, order.to or None, order.met)
            yield Action(0, op, host.name, job.id, job.name, {}, {}, *what)


def classes(hosts: Iterable[HostHistory]) -> dict[str, dict[str, str]]:
    """Return the class of each job that has one, by its name, for each host."""
    by_host = {
        host.name: {
            container.name: allocation.job_class
            for key, allocation in host.decision.allocations.items()
            if key in host.containers
            for container in host.containers[key].containers
        }
        for host in hosts
    }
    return {name: dict(sorted(jobs.items())) for name, jobs in by_host.items() if jobs}


def gain(hosts: Iterable[HostHistory]) -> str:
    """Return what the last rounds are expected to bring, in one line."""
    gains = {host.name: host.decision.gain for host in hosts if host.decision.gain}
    if len(gains) == 1:
        return next(iter(gains.values()))
    return "; ".join(f"{name}: {gain}" for name, gain in gains.items())


def modes(realised: Realised) -> dict[str, str]:
    """Return the plan's parameters that say how shares became settings on all hosts, and why."""
    decided = [one for one in realised.values() if one.settings or one.unable]
    names = sorted({one.mode.value for one in decided})
    whys = sorted({one.why for one in decided})
    return {"realize": "+".join(names), "realize_why": "; ".join(whys)} if names else {}
