"""What jobs lose by competing for CPUs, by their measured paces, and whether those that wait are
paused.

Where threads of several jobs compete for CPUs, some lose most of their time and some lose nothing:
it depends on whether they spin or sleep while they wait for each other. So a job of several threads
is taken to spin until something is measured. Then a job that keeps `KEEPS` of its best rate while
others hold it back does not spin, and one that keeps less than `LOSES` does; one that has shown
nothing is as those of its number of threads are that have, else as all that have. A job shows that
it loses nothing only after it has gone first: the best rate of another is one of competing.

Where the first job keeps less than `AHEAD` although the others wait, these are paused, if turns are
forecast to end the jobs sooner than an order at which so much is lost. A pace falls in a validation
and a checkpoint too: so only of a job that gets fewer CPUs than it wants, after `PATIENCE_S`. And
only where programs that are no jobs use few CPUs: a pause of jobs takes nothing from those. All of
it ours.

`pace_tracking` brings the paces up to date, and asks; `arrangement` goes by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dltools.notation.times import MICRO
from dltools.plan.realisation.mode import OTHERS, ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.signals.busy_threads import busy_threads
from dltools.plan.signals.job import Job

KEEPS, LOSES, AHEAD = 0.9, 0.6, 0.75
PATIENCE_S = 60.0
_LOOK_S, _LONGEST_LOOK_S, _BEGIN_LOOK_S = 10.0, 60.0, 2.0
_LOOK_PART = 0.05
"""How often to look (s): seldom where nobody has come for long."""


@dataclass(frozen=True, slots=True)
class Contention:
    """What was found on a crowded host."""

    since: int | None = None
    """Since when the host is crowded (microseconds), None where it is not."""

    paused_at: int | None = None
    """Since when those that wait are paused (microseconds), None while they are not."""

    ahead: float = 0.0
    """The part of their best rate that the first jobs kept although others waited, 0 to 1."""

    def look_s(self, now: int, newest: int) -> float:
        """In how many seconds to look again, where the newest job has come at a time."""
        if self.paused_at == now:
            return _BEGIN_LOOK_S
        return min(_LONGEST_LOOK_S, max(_LOOK_S, _LOOK_PART * (now - newest) / MICRO))

    def choice(self, ordered: ModeChoice, now: int) -> ModeChoice:
        """Return the mode for a host where jobs run in order: with pauses, where these win.

        Before turns begin, jobs that waited at low weights get the default back.
        """
        comparison = ordered.compared
        if self.paused_at is None or comparison is None:
            return ordered
        if self.ahead >= (comparison.ordered / comparison.turns if comparison.wins else 1.0):
            return ordered
        is_even = self.paused_at == now
        mode = Mode.WEIGHT if is_even else Mode.ROTATE
        kept = f"the first do at most {100 * self.ahead:.0f} % of their best rate"
        why = f"{kept} although others wait: pause these"
        return replace(ordered, mode=mode, why=why, is_even=is_even)

    def measured(self, jobs: Iterable[Job], now: int, others: float | None = None) -> Contention:
        """Return what the paces of a crowded host's jobs show.

        `others`: the share of the CPUs that programs use which are no jobs, None where that is
        unknown.
        """
        if self.since is None:
            return Contention(now)
        may_pause = others is None or others < OTHERS
        is_patient = now - self.since >= round(PATIENCE_S * MICRO)
        if self.paused_at is not None or not (may_pause and is_patient):
            return self
        first = [job for job in jobs if job.use.cpu.is_held_back is not False]
        kept = [part for job in first if (part := _kept_ahead(job)) is not None]
        ahead = sum(kept) / len(kept) if kept else 1.0
        return self if ahead >= AHEAD else Contention(self.since, now, ahead)


def spins(jobs: Sequence[Job], cpus: float) -> dict[str, float]:
    """Return what part of the loss by spinning each of a host's jobs is taken to suffer, by id: 0
    where it loses nothing, 1 where it spins. Threads that are more than the CPUs sleep."""
    threads = {job.id: busy_threads(job) for job in jobs}
    able = [job for job in jobs if 1 < threads[job.id] <= cpus]
    shown = {job.id: part for job in able if (part := _spin_shown(job)) is not None}
    by_threads: dict[int, list[float]] = {}
    for key, part in shown.items():
        by_threads.setdefault(threads[key], []).append(part)
    every = list(shown.values()) or [1.0]
    parts = dict.fromkeys(threads, 0.0)
    for job in able:
        alike = by_threads.get(threads[job.id], every)
        parts[job.id] = shown.get(job.id, sum(alike) / len(alike))
    return parts


def _spin_shown(job: Job) -> float | None:
    pace = job.progress.pace
    kept = None if pace is None else pace.part_of_best(pace.shared)
    if pace is None or kept is None or (kept >= LOSES and pace.ahead is None):
        return None
    return min(1.0, max(0.0, (KEEPS - kept) / (KEEPS - LOSES)))


def _kept_ahead(job: Job) -> float | None:
    """Return the part of its best rate that a job keeps while it goes first, None if unknown."""
    pace = job.progress.pace
    return None if pace is None else pace.part_of_best(pace.ahead)
