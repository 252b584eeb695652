"""How shares are enforced, and which mode suits a host, by its threads and its CPUs.

`rounds` asks `choose_mode`; `contention` changes the mode where measured paces show it to be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from dltools.plan.policy.interface import HostState
from dltools.plan.policy.parameters import parameter
from dltools.plan.realisation.queue import MAX_SLOWDOWN
from dltools.plan.realisation.settings import Settings
from dltools.plan.signals.busy_threads import busy_threads, has_one_thread, is_serving, needed_cpus
from dltools.plan.signals.container_history import ContainerHistory


class Mode(StrEnum):
    """How shares are enforced."""

    QUOTA = "quota"
    WEIGHT = "weight"
    PRIORITY = "priority"
    ROTATE = "rotate"
    CORES = "cores"


OTHERS = 0.25
"""Share of the CPUs that programs use which are no jobs, from which on no job is paused unasked: a
pause takes nothing from those (ours)."""

QUANTUM_S = 8.0
"""Mean turn of `rotate` in seconds: changing over takes 0.16 s (measured), 2 % of it."""


@dataclass(frozen=True, slots=True)
class QueueParameters:
    """Parameters of every policy, for jobs that cannot all run at once, and for what owners asked
    for."""

    explore: float = parameter(
        10.0, "CPU seconds for which a job that has not reported twice runs alone", source="ours"
    )
    max_slowdown: float = parameter(
        MAX_SLOWDOWN,
        "over ten minutes, how many times less CPU than by equal turns a job may get",
        low=1.0,
        high=100.0,
        source="ours",
    )
    feeders: str = parameter(
        "first",
        "whether trainings that feed a GPU go before jobs that compute on CPUs",
        choices=("first", "equal"),
        source="ours",
    )
    gpu_period: float = parameter(
        1.0,
        "seconds of the period in which a training runs for its share of a GPU",
        low=0.2,
        high=60.0,
        source="ours",
    )
    owners: str = parameter(
        "respect",
        "whether what owners asked for at start bounds what is set",
        choices=("respect", "ignore"),
        source="ours",
    )

    users: str = parameter(
        "alone",
        "whether the CPUs are shared among users first: fair, or each job for itself",
        choices=("alone", "fair"),
        source="ours",
    )

    @property
    def is_fair_among_users(self) -> bool:
        """Whether the CPUs are shared among users first, then among the jobs of each."""
        return self.users == "fair"

    @property
    def respects_owners(self) -> bool:
        """Whether what owners asked for bounds what is set."""
        return self.owners == "respect"


@dataclass(frozen=True, slots=True)
class RealisationOptions:
    """What the user asks for.

    `mode`: None for the one that suits what is observed; `quantum_s`: mean length of a turn (s).
    """

    mode: Mode | None = None
    quantum_s: float = QUANTUM_S
    queue: QueueParameters = QueueParameters()


@dataclass(frozen=True, slots=True)
class GpuSharing:
    """What becomes of jobs that share GPUs. `turns`: by the name of a GPU queue, the ids of the
    jobs that take turns in it; `settings`: by job id, what brings jobs to their shares of GPUs;
    `notes`: by job id, why jobs share or take turns, or how they get their shares."""

    turns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Settings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The mode for a host, and why; `quantum_s` and `queue` are those of the options.

    `is_even`: no job is held back, whatever the shares. `is_mild`: weights differ by a
    factor of four at most, as what is set may stay for good. `on_gpus`: what becomes of jobs that
    share GPUs. `weights_order`: whether jobs of far smaller weights leave the first almost alone.
    `unable`: why nothing of it can be done, "" where it can. `fills`: quotas hold nobody below a
    quarter of an equal share, and what a job cannot use is the others'.
    """

    mode: Mode
    why: str
    quantum_s: float = QUANTUM_S
    queue: QueueParameters = QueueParameters()
    is_even: bool = False
    is_mild: bool = False
    on_gpus: GpuSharing = field(default_factory=GpuSharing)
    weights_order: bool = True
    unable: str = ""
    fills: bool = False

    def mild(self, *, as_asked: bool) -> ModeChoice:
        """Return the choice for settings that may stay for good: nobody is paused, unless that was
        asked for."""
        mode = Mode.PRIORITY if self.mode is Mode.ROTATE and not as_asked else self.mode
        return replace(self, mode=mode, is_mild=True, weights_order=True)


def choose_mode(
    options: RealisationOptions, host: HostState, silent: Sequence[ContainerHistory] = ()
) -> ModeChoice:
    """Return the mode for a host: the one asked for, else by its threads against its cores.

    Where CPUs are idle no job waits for one: `weight` holds nobody back, and neither do `priority`
    and `rotate` where they are asked for. Where trainings of several threads have more threads than
    there are CPUs: `priority`. Else, and beside serving containers, which must not wait for a turn:
    `weight` (ours). `silent` jobs, which have reported nothing yet, count too; those that feed a
    GPU stand in no line.

    Trainings of one thread each win nothing by an order: the CPUs of those that end first stay idle
    at the end. There `weight` holds nobody back.

    Where a job does not fit beside those that feed a GPU, and go first, weights order nothing: when
    a feeder waits for its GPU, its CPU takes a thread of one that waits, and the first keeps both
    its threads on one CPU. On two CPUs three trainings had 5 steps a second by weights of 1024, 10
    and 2, 15 by equal ones, and the first alone 30 to 45 (measured). There jobs take turns.
    """

    now = host.sampled_at or 0
    awake = [job for job in (*host.jobs, *silent) if not job.is_idle]
    is_first = options.queue.feeders == "first"
    everyone = [job for job in awake if not (is_first and job.feeds_gpu(now))]
    feeding = [job for job in awake if is_first and job.feeds_gpu(now) and not is_serving(job)]
    room = host.cpus - cpus_together(feeding, host.cpus)
    fits = not feeding or all(needed_cpus(job) <= room for job in everyone)

    def choice(mode: Mode, why: str, *, is_even: bool = False) -> ModeChoice:
        return ModeChoice(mode, why, options.quantum_s, options.queue, is_even, weights_order=fits)

    nothing = _nothing_to_win(host, everyone)
    if options.mode is not None:
        is_even = bool(nothing) and options.mode in (Mode.PRIORITY, Mode.ROTATE)
        return choice(
            options.mode, f"as asked; {nothing}" if is_even else "as asked", is_even=is_even
        )
    if nothing:
        return choice(Mode.WEIGHT, nothing, is_even=True)
    if everyone and all(has_one_thread(job) and not is_serving(job) for job in everyone):
        why = f"jobs of one busy thread each on {host.cpus:g} CPUs: an order wins nothing"
        return choice(Mode.WEIGHT, why, is_even=True)
    threads = [busy_threads(job) for job in everyone]
    total = sum(needed_cpus(job) for job in everyone)
    jobs = "1 job" if len(threads) == 1 else f"{len(threads)} jobs"
    crowded = f"{total:g} busy threads of {jobs} on {host.cpus:g} CPUs"
    if any(is_serving(job) for job in host.jobs):
        return choice(Mode.WEIGHT, "some containers serve: none may wait for a turn")
    if total > host.cpus and max(threads, default=1) > 1 and len(threads) > 1:
        if not fits and (host.others is None or host.others < OTHERS):
            return choice(Mode.ROTATE, f"{crowded}, beside {len(feeding)} that feed GPUs")
        why = f"{crowded}: jobs of several threads that compete lose time"
        return choice(Mode.PRIORITY, why)
    return choice(Mode.WEIGHT, f"{crowded}: nothing is lost by competing")


def cpus_together(jobs: Sequence[ContainerHistory], cpus: float) -> float:
    """Return how many of a host's `cpus` jobs need together."""
    return sum(min(needed_cpus(job), cpus) for job in jobs)


def _nothing_to_win(host: HostState, everyone: Sequence[ContainerHistory]) -> str:
    """Return why no job need wait, "" where CPUs are contested or that is unknown.

    Jobs that take turns leave CPUs idle by that: there, what they need together counts.
    """
    if host.is_contested is not False or host.busy_share is None:
        return ""
    takes_turns = any(job.turn_s is not None for job in everyone)
    if takes_turns and sum(needed_cpus(job) for job in everyone) > host.cpus:
        return ""
    return f"CPUs {100 * host.busy_share:.0f} % busy: nothing to win"
