"""Whether a host loses its CPU time to contention, by the paces of its jobs, and which mode
follows.

Where threads of several jobs compete for CPUs, some lose most of their time and some lose nothing:
it depends on whether they spin or sleep while they wait for each other. So the rule of thumb by
threads and CPUs applies until something is measured. Then:

- jobs that keep `KEEPS` of their best rate while others hold them back need no turns: `weight`;
- jobs that keep less than `LOSES` take turns: `priority`;
- where the first job keeps less than `LOSES` although the others wait: `rotate`. A pace falls in a
  validation and a checkpoint too: so only of a job that gets fewer CPUs than it wants. And only
  where programs that are no jobs use few CPUs: a pause of jobs takes nothing from those.

In between the mode stays. A step to less isolation waits `PATIENCE_S`, twice as long each time, and
one to `rotate` waits it once; the step from `weight` to `priority` is taken at once. Where nothing
says how jobs compete, `weight` is tried for `TRIAL_S` after the same patience. All of it ours.

`pace_tracking` brings the paces up to date, and asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dltools.notation.times import MICRO
from dltools.plan.realisation.mode import OTHERS, Mode, ModeChoice
from dltools.plan.signals.busy_threads import busy_threads
from dltools.plan.signals.container_history import ContainerHistory

KEEPS, LOSES = 0.9, 0.75
PATIENCE_S = 60.0
TRIAL_S = 10.0
LOOK_S, TRIAL_LOOK_S = 10.0, 2.0

SHARING_PATIENCE_S = 120.0
"""For how long (s) sharing must lose before turns begin (ours)."""

_ISOLATION = (Mode.WEIGHT, Mode.PRIORITY, Mode.ROTATE)


@dataclass(frozen=True, slots=True)
class Contention:
    """What was found on a crowded host.

    `mode`: None where nothing is measured. `since`: when the mode last changed (microseconds),
    None where the host is not crowded. `moves`: steps to less isolation so far. `is_trial`: the
    mode is tried.
    """

    mode: Mode | None = None
    why: str = ""
    since: int | None = None
    moves: int = 0
    is_trial: bool = False

    def look_s(self, now: int) -> float:
        """In how many seconds to look again."""
        return TRIAL_LOOK_S if self.is_trial or self._begins_rotation(now) else LOOK_S

    def choice(self, prior: ModeChoice, now: int) -> ModeChoice:
        """Return the mode for a host: what was measured, where the rule of thumb takes turns.

        Before turns begin, jobs that waited at low weights get the default back.
        """
        if self.mode is None or prior.mode is not Mode.PRIORITY:
            return prior
        is_even = self.is_trial or self._begins_rotation(now)
        mode = Mode.WEIGHT if is_even else self.mode
        return replace(prior, mode=mode, why=self.why, is_even=is_even)

    def calm(self) -> Contention:
        """Return what is known where threads and CPUs leave nothing to decide."""
        return Contention(moves=self.moves)

    def measured(
        self,
        jobs: Sequence[ContainerHistory],
        cpus: float,
        now: int,
        *,
        may_try: bool,
        others: float | None = None,
    ) -> Contention:
        """Return what the paces of a crowded host's jobs show.

        `may_try`: `weight` may be tried. `others`: the share of the CPUs that programs use
        which are no jobs, None where that is unknown.
        """
        at = self if self.since is not None else replace(self, since=now)
        shared = _kept(jobs, "shared")
        ahead = _kept([job for job in jobs if job.cpu.is_held_back is not False], "ahead")
        may_rotate = not _keeps(shared) and at._may_rotate(now, others)
        if ahead is not None and ahead.part < LOSES and may_rotate:
            why = f"{ahead.says(lost=True)} although others wait: pause these"
            return at._moved(Mode.ROTATE, why, now)
        if shared is None:
            return at._unknown(may_try=may_try and _would_show(jobs, cpus), cpus=cpus, now=now)
        if shared.part < LOSES:
            mode = Mode.ROTATE if at.mode is Mode.ROTATE else Mode.PRIORITY
            return at._moved(mode, f"{shared.says(lost=True)} while competing: take turns", now)
        if shared.part >= KEEPS:
            why = f"{shared.says(lost=False)} while competing: turns win nothing"
            return at._moved(Mode.WEIGHT, why, now)
        why = f"{shared.says(lost=True)} while competing: too little to change"
        return at._moved(at.mode or Mode.PRIORITY, why, now)

    def _unknown(self, *, may_try: bool, cpus: float, now: int) -> Contention:
        """Return what follows where no job has been seen to compete."""
        if self.is_trial and now - (self.since or 0) >= round(TRIAL_S * MICRO):
            return Contention(since=now, moves=self.moves)
        if self.is_trial or not may_try or not self._is_patient(now):
            return self
        why = f"equal weights for {TRIAL_S:g} s on {cpus:g} CPUs: does competing lose time?"
        return Contention(Mode.WEIGHT, why, now, self.moves + 1, is_trial=True)

    def _moved(self, mode: Mode, why: str, now: int) -> Contention:
        """Return the change to a mode, or what holds until it may change."""
        before = self.mode or Mode.PRIORITY
        if mode is before:
            return replace(self, mode=mode, why=why, is_trial=False)
        if _ISOLATION.index(mode) > _ISOLATION.index(before):
            return Contention(mode, why, now, self.moves)
        if not self._is_patient(now):
            return self
        return Contention(mode, why, now, self.moves + 1)

    def _begins_rotation(self, now: int) -> bool:
        return self.mode is Mode.ROTATE and self.since == now

    def _may_rotate(self, now: int, others: float | None) -> bool:
        if self.mode is Mode.ROTATE:
            return True
        is_first = self.mode is not Mode.WEIGHT and (others is None or others < OTHERS)
        return is_first and now - (self.since or 0) >= round(PATIENCE_S * MICRO)

    def _is_patient(self, now: int) -> bool:
        patience_s = PATIENCE_S * 2 ** min(self.moves, 20)
        return self.since is not None and now - self.since >= round(patience_s * MICRO)


@dataclass(frozen=True, slots=True)
class _RatesKept:
    """The part of their best rate that so many jobs, of so many threads, keep in the mean."""

    part: float
    jobs: int
    threads: str

    def says(self, *, lost: bool) -> str:
        """Return it in words: 2 jobs of 2 threads do at most 41 % of their best rate."""
        noun, whose = ("job", "its") if self.jobs == 1 else ("jobs", "their")
        verb = ("does" if self.jobs == 1 else "do") + (" at most" if lost else "")
        return (
            f"{self.jobs} {noun} of {self.threads} threads {verb} {100 * self.part:.0f} % of "
            f"{whose} best rate"
        )


def _kept(jobs: Iterable[ContainerHistory], name: str) -> _RatesKept | None:
    """Return what jobs keep of their best rates; None where no job shows it."""
    found = [
        (job, job.pace, rate)
        for job in jobs
        if job.pace is not None and (rate := getattr(job.pace, name)) is not None
    ]
    if not found:
        return None
    part = sum(min(1.0, rate / pace.best) for _, pace, rate in found) / len(found)
    threads = sorted({busy_threads(job) for job, _, _ in found})
    span = f"{threads[0]}" if len(threads) == 1 else f"{threads[0]} to {threads[-1]}"
    return _RatesKept(part, len(found), span)


def _keeps(kept: _RatesKept | None) -> bool:
    return kept is not None and kept.part >= KEEPS


def _would_show(jobs: Sequence[ContainerHistory], cpus: float) -> bool:
    """Tell whether a trial is long enough for some job to report twice."""
    share = cpus / max(1, len(jobs))
    return any(
        job.pace is not None
        and (due := job.pace.report_cpu_s) is not None
        and 2 * due <= TRIAL_S * min(share, busy_threads(job))
        for job in jobs
    )


@dataclass(frozen=True, slots=True)
class MeasuredSharing:
    """What was measured of the jobs that share some GPUs.

    `runs`: which they are. `total`: the parts of their best rates alone that they keep, added up;
    None where one of them is unknown. `since`: since when that has been under 1 (microseconds).
    `takes_turns`: it was for long enough.
    """

    runs: tuple[str, ...]
    total: float | None = None
    since: int | None = None
    takes_turns: bool = False

    def after(self, total: float | None, now: int) -> MeasuredSharing:
        """Return it after a look at a time (microseconds). Turns go on: what sharing would cost is
        not seen meanwhile."""
        if self.takes_turns:
            return self
        since = None
        if total is not None and total < 1:
            since = now if self.since is None else self.since
        is_long = since is not None and now - since >= round(SHARING_PATIENCE_S * MICRO)
        return replace(self, total=total, since=since, takes_turns=is_long)
