"""Containers that feed a GPU go before those that compute on CPUs: an idle GPU costs more.

A job that has used a GPU in the last minutes does not queue for CPUs, and is never paused or capped
to free CPUs. Where CPUs are contested, its weight is so high that it gets what it wants at once; it
wants little, because the GPU does the work. Feeders that together want more than half of the CPUs
get a smaller weight: they compute on CPUs too. Those that share a GPU may have shares of it, see
`dltools.plan.hosts.gpu_shares`. Where weights do not keep their pace, because threads that are busy
nearby take caches and the other half of a core, `CpusLeft` finds how many CPUs to leave to them
alone. All of it is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import fmean

from dltools.actions.settings import Settings
from dltools.notation.limits import DEFAULT_WEIGHT
from dltools.notation.resources import format_cpus
from dltools.notation.times import MICRO
from dltools.plan.policy.interface import HostState
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.shared_host import Realisation, SharedHost
from dltools.plan.signals.busy_threads import cpus_together, is_serving, needed_cpus
from dltools.plan.signals.job import Job
from dltools.text import joined

FIRST_WEIGHT = 64 * DEFAULT_WEIGHT
"""Weight of those that want little: on a CPU with four threads of the default weight they have 94 %
of it."""

FIRST_BESIDE_TURNS = 16 * DEFAULT_WEIGHT
"""The same beside jobs that take turns. With more, the kernel keeps both threads of such a job on
one CPU for longer (measured: 16 to 38 steps a second, instead of 30 to 45)."""

NEAR_WEIGHT = 4 * DEFAULT_WEIGHT
"""Weight of those that want much."""

_LITTLE = 0.5
"""Share of the CPUs up to which feeders want little together."""


_UNBOUND: Mapping[Mode, tuple[Settings, str]] = {
    Mode.ROTATE: ({}, "never paused for CPUs"),
    Mode.QUOTA: ({"cpus": None}, "no cap"),
}
"""What frees a feeder from the order of a mode."""


def feeders(host: SharedHost, state: HostState) -> Realisation:
    """Return the settings of the jobs that feed GPUs; its notes tell which these are."""
    is_first, levers = host.choice.queue.feeders == "first", host.choice.levers
    jobs = [
        job
        for job in host.jobs
        if is_first
        and job.use.is_feeder(host.now)
        and (not is_serving(job) or job.id in levers.notes)
    ]
    setting, note = _setting(host.choice, state, cpus_together(jobs, host.cpus))
    settings: dict[str, Settings] = {}
    notes: dict[str, str] = {}
    for job in jobs:
        settings[job.id] = setting | levers.settings.get(job.id, {})
        notes[job.id] = joined(note, levers.notes.get(job.id))
    return host.realisation(levers.note, settings=settings, notes=notes)


def _setting(choice: ModeChoice, host: HostState, needs: float) -> tuple[Settings, str]:
    """Return what feeders get, whatever else the mode orders: it holds none of them back, and where
    CPUs are contested they go before the others."""
    kept, note = _UNBOUND.get(choice.mode, ({}, "not in the queue for CPUs"))
    is_contested = not choice.is_even if host.is_contested is None else host.is_contested
    if choice.is_mild or not is_contested:
        return {**kept, "weight": DEFAULT_WEIGHT}, f"feeds a GPU: {note}"
    first = FIRST_BESIDE_TURNS if choice.mode is Mode.ROTATE else FIRST_WEIGHT
    weight = first if needs <= _LITTLE * host.cpus else NEAR_WEIGHT
    note = f"{note}, before jobs on CPUs" if choice.mode in _UNBOUND else "before jobs on CPUs"
    return {**kept, "weight": weight}, f"feeds a GPU: {note}"


KEEPS = 0.95
"""The part of their best pace that feeders are to keep."""

_HELPS = 0.02
"""By what part of their best pace feeders must gain where CPUs are left to them (ours)."""

_OTHERS_KEEP = 0.75
"""Part of the CPUs beyond what feeders need that other jobs keep at least (ours)."""

_SETTLE_S, _LOOK_S = 20.0, 60.0
"""After how long paces count (s), and after how long it is judged by the best of these (ours)."""

_LOOKS = 10
"""Number of looks after which all is looked for anew (ours): what feeders need may have changed."""


@dataclass(frozen=True, slots=True)
class CpusLeft:
    """How many CPUs other jobs leave to those that feed GPUs, found by measuring: none at first,
    then as many as feeders use, then half as many more, until these keep `KEEPS` of their best
    pace."""

    count: int = 0
    """So many CPUs."""

    before: tuple[int, float] = (0, 0.0)
    """How many it was before, and what part of their best pace feeders kept then in the mean."""

    is_vain: bool = False
    """Whether one more step did not help."""

    looks: int = 0
    """How many looks there have been since."""

    since: int | None = None
    """When the next look begins (microseconds), None before feeders are followed."""

    paces: Mapping[str, float] = field(default_factory=dict)
    """The best pace of each feeder since, by run, as a part of its best ever."""

    def measured(
        self, feeding: Sequence[Job], others: Sequence[Job], now: int, cpus: float, core: int = 1
    ) -> CpusLeft:
        """Return how many CPUs are to be left from now on, on a crowded host of so many CPUs, of
        which each core has `core`. The others keep most of the rest, and as many as the widest of
        them keeps busy."""
        if self.since is None or self.looks >= _LOOKS:
            return CpusLeft(since=now)
        span_s = (now - self.since) / MICRO
        if span_s < _SETTLE_S:
            return self
        paces = {job.run_id: self._best_pace(job) for job in feeding}
        seen = replace(self, paces={run: part for run, part in paces.items() if part > 0})
        if span_s < _LOOK_S:
            return seen
        stays = replace(self, looks=self.looks + 1, since=now, paces={})
        kept = fmean(seen.paces.values()) if seen.paces else 1.0
        if self.is_vain or kept >= KEEPS:
            return stays
        earlier, kept_then = self.before
        if self.count > earlier and not self.looks and kept < kept_then + _HELPS:
            return CpusLeft(earlier, is_vain=True, since=now)
        need = cpus_together(feeding, cpus)
        count = core * math.ceil((self.count + need / 2 if self.count else need) / core)
        least = max([_OTHERS_KEEP * (cpus - need), *map(needed_cpus, others)])
        return CpusLeft(count, (self.count, kept), since=now) if cpus - count >= least else stays

    def _best_pace(self, job: Job) -> float:
        """Return the best pace of a job since the look began, as a part of its best ever; 0 if
        unknown."""
        pace = job.progress.pace
        part = None if pace is None else pace.part_of_best(pace.ahead)
        return max(part or 0.0, self.paces.get(job.run_id, 0.0))


def list_of_others(host: SharedHost) -> Settings:
    """Return the list of the CPUs that jobs have which leave some to feeders, nothing where they
    leave none, or the CPUs' numbers are unknown. They leave whole cores."""
    left, kept = host.choice.cpus_left, [*host.cores]
    while kept and left >= len(kept[-1]):
        left -= len(kept.pop())
    others = sorted(chain.from_iterable(kept))
    return {"cpuset": format_cpus(others)} if host.choice.cpus_left and others else {}
