"""One round: look at a host, ask the policy, turn its allocations into settings.

The planner drives rounds over recordings and live streams, the simulator in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from dltools.labels import Role
from dltools.notation.limits import differs
from dltools.plan.forecast.docker_alone import Due
from dltools.plan.hosts.gpu_shares import LOOK_S, lever_settings, move_levers
from dltools.plan.hosts.host_history import HostHistory, Jobs, Look
from dltools.plan.hosts.pace_tracking import measured_contention, measured_cpus_left, note_places
from dltools.plan.policy.by_resource import decide
from dltools.plan.policy.by_user import FairAmongUsers
from dltools.plan.policy.interface import Cluster, HostState, Policy, Requirements, State
from dltools.plan.realisation.arrangement import choose_mode
from dltools.plan.realisation.bounds import possible
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import ORDERED, Mode, RealisationOptions
from dltools.plan.realisation.realise import Situation, realise
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.busy_threads import busy_threads
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import present_settings
from dltools.plan.signals.job import Job

_LOOK_S = 5.0
"""How often jobs that have reported nothing, and the load of the host, are looked at (s)."""

_EXPLORING_LOOK_S = 1.0
"""How often, while one of them explores: it may start threads."""

_SHORTEST_LOOK_S = 0.1
"""The shortest time until the next look (s)."""

_DEMAND_LOOK_S = 2.0
"""How often, where it is known how many CPUs jobs want: one may fall asleep, or wake."""

_LATEST_BY_SHARES = 2.0
"""How many times later a job may end at least where shares are asked for: they tell jobs apart, and
a smaller bound would leave little of them (ours)."""

_EXPLORING = (None, *ORDERED)
"""Modes, as asked for, in which new jobs may explore."""

OtherHosts = Callable[[], Mapping[str, HostHistory]]
"""Returns the histories of all hosts; each is brought up to date when it is looked at."""

_T = TypeVar("_T")


class Lazy(Mapping[str, _T]):
    """What belongs to each host by its name, made when it is looked at: there may be many hosts."""

    def __init__(self, names: Collection[str], make: Callable[[str], _T]) -> None:
        self._names = names
        self._make = cache(make)

    def __getitem__(self, name: str) -> _T:
        """Return what belongs to a host."""
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        """Yield the hosts' names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many hosts there are."""
        return len(self._names)


class Rounds:
    """The rounds of one policy on any number of hosts."""

    def __init__(
        self, policy: Policy, parameters: Any, options: RealisationOptions, memory: State
    ) -> None:
        """`memory` is what the policy has remembered so far, {} at first. `has_levers`, False
        at first: levers bring jobs to their shares of devices, where shares are caps, or servers
        have targets there."""
        self.policy = policy
        self.parameters = parameters
        self.memory = memory
        self.has_levers = False
        self.requirements: Requirements = policy.requirements(parameters)
        may_explore = self.requirements.silent_jobs and options.mode in _EXPLORING
        explore = options.queue.explore if may_explore else 0.0
        queue = replace(options.queue, explore=explore)
        self.options = replace(options, queue=queue, policy=policy.name)
        if self.requirements.users:
            self.options = replace(self.options, queue=replace(self.options.queue, users="fair"))
        elif options.queue.users == "fair":
            self.policy = FairAmongUsers(policy)

    def run(
        self, host: HostHistory, all_hosts: OtherHosts, *, target_met: bool
    ) -> Realisation | None:
        """Run a round on a host that has just been sampled, if one is due.

        Return the settings that now hold, None where neither a round nor a turn of the queue was
        due. The history keeps the allocations, the actions and the queue.
        """
        look = host.look()
        news = self.options.queue.explore > 0 and any(job.progress.has_news for job in look.jobs)
        is_interrupted = news or (target_met and self.requirements.targets)
        due = host.start_round(self.requirements, look.jobs, is_interrupted=is_interrupted)
        if due or (self.requirements.cluster and host.cpus > 0 and host.timer.has_fallen_idle):
            self._decide(host, due, all_hosts)
        elif not host.queue.is_due(host.sampled_at or 0):
            return None
        return self._settle(host, look)

    def _settle(self, host: HostHistory, look: Look) -> Realisation:
        """Return the settings that now hold, and keep the queue."""
        outlook, load = host.outlook, host.load
        host.note_others(look)
        idle_s = load.idle_since(outlook.alone.at, host.cpus)
        jobs, cpus = (*look.jobs, *self._competing(look)), load.others.left_of(host.cpus)
        outlook.alone = outlook.alone.after(host.sampled_at or 0, jobs, cpus, idle_s)
        if self._moves_levers:
            move_levers(host)
        state = host.state(look.jobs)
        choice = self._choice(host, look, state)
        if not self.measures:
            realisation = self._settings(host, look, state, choice)
            host.queue = realisation.queue
            return realisation
        is_crowded = choice.compared is not None
        if self._look_ahead(host, look, choice):
            choice = self._choice(host, look, state)
        realisation = self._settings(host, look, state, choice)
        host.queue = note_places(host, look.jobs, realisation, is_crowded=is_crowded)
        return realisation

    def _look_ahead(self, host: HostHistory, look: Look, choice: ModeChoice) -> bool:
        """Keep what is forecast and measured with a choice; tell whether it must be made anew."""
        now, outlook, queue = host.sampled_at or 0, host.outlook, self.options.queue
        jobs = (*look.jobs, *self._competing(look))
        outlook.compared = choice.compared
        is_crowded = choice.compared is not None
        ends_s = choice.compared.left_s(now) if choice.compared else {}
        left_s = {
            job.run_id: None
            if job.progress.explores(job.use.attained, queue.explore)
            else ends_s.get(job.run_id)
            for job in jobs
        }
        outlook.forecasts = outlook.forecasts.after(now, choice.mode, left_s)
        before = outlook.contention.paused_at, outlook.cpus_left.count
        outlook.contention = measured_contention(host, look.jobs, is_crowded=is_crowded)
        beside = jobs if queue.feeders == "first" else ()
        outlook.cpus_left = measured_cpus_left(host, beside, is_crowded=is_crowded)
        return (outlook.contention.paused_at, outlook.cpus_left.count) != before

    def _settings(
        self, host: HostHistory, look: Look, state: HostState, choice: ModeChoice
    ) -> Realisation:
        """Return the settings of a host's containers, which are managed from now on."""
        realisation = self._realise(host, look, state, choice)
        for key, setting in realisation.settings.items():
            container = host.containers[key]
            container.managed = True
            container.owner = container.owner.after_plan(setting)
        for job in host.no_longer_jobs():  # the last word to it is what it began with
            present = present_settings(job.in_force, host.cpus, host.cpuset)
            job.managed = differs(realisation.settings.get(job.id, {}), present, host.cpus)
        return realisation

    def planned(self, host: HostHistory, *, is_lasting: bool) -> Realisation:
        """Return the settings of a host's containers at its newest sample; `is_lasting`: mild ones,
        as they may stay for good."""
        look = host.look()
        state = host.state(look.jobs)
        choice = self._choice(host, look, state)
        if is_lasting:
            choice = choice.mild(as_asked=self.options.mode is not None)
        return self._realise(host, look, state, choice, is_lasting=is_lasting)

    def _realise(
        self,
        host: HostHistory,
        look: Look,
        state: HostState,
        choice: ModeChoice,
        *,
        is_lasting: bool = False,
    ) -> Realisation:
        competing, is_asked = self._competing(look), self.options.mode is not None
        jobs, others = (*look.jobs, *competing), state.others
        choice = possible(choice, jobs, is_asked=is_asked, is_lasting=is_lasting, others=others)
        if self._moves_levers and not is_lasting:
            choice = replace(choice, levers=lever_settings(host, self.options.queue))
        cores = host.load.by_core(host.cpuset) if choice.cpus_left else ()
        dues, leaving = self._dues(host, choice), host.no_longer_jobs()
        situation = Situation(host.queue, dues, cores, look.silent, competing, leaving)
        realisation = realise(choice, state, situation)
        queue, looks = realisation.queue, [*self._looks(host, look, choice)]
        queue = queue.due_by(host.sampled_at or 0, min(looks)) if looks else queue
        return replace(realisation, queue=queue)

    def _looks(self, host: HostHistory, look: Look, choice: ModeChoice) -> Iterator[float]:
        """Yield in how many seconds to look at jobs again."""
        explore, jobs = self.options.queue.explore, (*look.jobs, *self._competing(look))
        for job in jobs:
            if job.progress.explores(job.use.attained, explore):
                yield _explored_in_s(job, host.cpus, explore)
        if len(jobs) > 1 and not host.looks_after_changes:
            if any(job.use.cpu.demand is not None for job in jobs):
                yield _DEMAND_LOOK_S
            elif host.load.busy.is_contested is not None:
                yield _LOOK_S
        if choice.levers.notes:
            yield LOOK_S
        if look.silent and self.requirements.silent_jobs:
            yield _LOOK_S

    def _dues(self, host: HostHistory, choice: ModeChoice) -> dict[str, Due]:
        """Return until when jobs can wait; nothing where nobody does, or has."""
        is_free = choice.is_even and choice.mode is Mode.WEIGHT and not host.queue.positions
        if is_free and self.options.queue.users != "fair":
            return {}
        latest = self.options.queue.latest
        is_order = choice.mode in ORDERED or choice.is_even
        if not is_order:
            latest = max(latest, _LATEST_BY_SHARES)
        now, cpus = host.sampled_at or 0, host.load.others.left_of(host.cpus)
        return host.outlook.alone.dues(now, cpus, latest, is_order=is_order)

    @property
    def measures(self) -> bool:
        """Whether the mode follows from what is measured."""
        return self.options.mode is None and self.requirements.shares

    @property
    def _moves_levers(self) -> bool:
        is_wanted = self.options.mode is Mode.QUOTA or self.requirements.servers
        return self.has_levers and is_wanted and self.options.queue.feeders == "first"

    def _choice(self, host: HostHistory, look: Look, state: HostState) -> ModeChoice:
        """Return the mode for a host at its newest sample."""
        return choose_mode(self.options, state, self._competing(look), host.outlook)

    def _competing(self, look: Look) -> list[ContainerHistory]:
        """Return the jobs that have reported nothing yet, and compete with the others."""
        silent = look.silent if self.requirements.silent_jobs else ()
        return [job for job in silent if job.use.is_busy and job.standing.role is Role.TRAINING]

    def _decide(self, host: HostHistory, jobs: Jobs, all_hosts: OtherHosts) -> None:
        states: Mapping[str, HostState] = {host.name: host.state(jobs)}
        if self.requirements.cluster:
            hosts = all_hosts()
            states = Lazy(hosts, lambda name: hosts[name].state())
        interval_s = host.timer.interval_s or 0.0
        cluster = Cluster(host.sampled_at or 0, host.name, states, interval_s)
        decision = decide(self.policy, cluster, self.parameters, self.memory)
        host.finish_round(decision, self.requirements, jobs)
        self.memory = decision.state


def _explored_in_s(job: Job, cpus: float, explore_s: float) -> float:
    """Return in how many seconds to look at a job that explores."""
    left_s = (explore_s - job.use.attained) / max(1e-3, min(busy_threads(job), cpus))
    return min(_EXPLORING_LOOK_S, max(_SHORTEST_LOOK_S, left_s))
