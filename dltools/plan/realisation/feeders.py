"""Containers that feed a GPU go before those that compute on CPUs: an idle GPU costs more.

A job that has used a GPU in the last minutes does not queue for CPUs, and is never paused or capped
to free CPUs. Where CPUs are contested, its weight is so high that it gets what it wants at once; it
wants little, because the GPU does the work. Feeders that together want more than half of the CPUs
get a smaller weight: they compute on CPUs too. Those that share a GPU may take turns there, see
`dltools.plan.hosts.pace_tracking`. All of it is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.notation.resources import short_gpu
from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.mode import GpuSharing, Mode, ModeChoice
from dltools.plan.realisation.settings import SHORTEST_TURN, Settings
from dltools.plan.signals.busy_threads import cpus_together, is_serving
from dltools.plan.signals.job import Job

FIRST_WEIGHT = 64 * DEFAULT_CPU_WEIGHT
"""Weight of those that want little: on a CPU with four threads of the default weight they have 94 %
of it."""

FIRST_BESIDE_TURNS = 16 * DEFAULT_CPU_WEIGHT
"""The same beside jobs that take turns. With more, the kernel keeps both threads of such a job on
one CPU for longer (measured: 16 to 38 steps a second, instead of 30 to 45)."""

NEAR_WEIGHT = 4 * DEFAULT_CPU_WEIGHT
"""Weight of those that want much."""

_LITTLE = 0.5
"""Share of the CPUs up to which feeders want little together."""


_UNBOUND: Mapping[Mode, tuple[Settings, str]] = {
    Mode.ROTATE: ({}, "never paused for CPUs"),
    Mode.QUOTA: ({"cpus": None}, "no cap"),
    Mode.CORES: ({"cpuset": None}, "all CPUs"),
}
"""What frees a feeder from the order of a mode."""


@dataclass(frozen=True, slots=True)
class Feeders:
    """The jobs of a host that feed GPUs: what each is set to, what is said of it, and the CPUs that
    they need together. `note`: that some of them take turns, "" where none does."""

    settings: Mapping[str, Settings] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    cpus: float = 0.0
    note: str = ""


def feeders(choice: ModeChoice, host: HostState, jobs: Sequence[Job], now: int) -> Feeders:
    """Return the settings of the jobs that feed GPUs at a time (microseconds)."""
    if choice.queue.feeders != "first":
        return Feeders()
    on_gpus = choice.on_gpus
    found = [
        job
        for job in jobs
        if job.use.feeds_gpu(now) and (not is_serving(job) or job.id in on_gpus.notes)
    ]
    needs = cpus_together(found, host.cpus)
    setting, note = _setting(choice, host, needs)
    turns = turn_settings(on_gpus, host.previous, choice.quantum_s)
    settings: dict[str, Settings] = {}
    notes: dict[str, str] = {}
    for job in found:
        if own := turns.get(job.id, setting | on_gpus.settings.get(job.id, {})):
            settings[job.id] = own
        what = _turn_note(turns[job.id]) if job.id in turns else note
        notes[job.id] = "; ".join(filter(None, (what, on_gpus.notes.get(job.id))))
    many = len(on_gpus.turns)
    turns_note = f"turns on GPUs in {many} queue{'s' if many > 1 else ''}" if turns else ""
    if any("turn_s" in one for one in on_gpus.settings.values()):
        turns_note = "shares of GPUs by parts of the time"
    return Feeders(settings, notes, needs, turns_note)


def _turn_note(turn: Settings) -> str:
    return f"{turn['turn_s']:g} s of every cycle on {short_gpu(turn['queue'])}"


def _setting(choice: ModeChoice, host: HostState, needs: float) -> tuple[Settings, str]:
    """Return what feeders get, whatever else the mode orders: it holds none of them back, and where
    CPUs are contested they go before the others."""
    kept, note = _UNBOUND.get(choice.mode, ({}, "in no line for CPUs"))
    is_contested = not choice.is_even if host.is_contested is None else host.is_contested
    if choice.is_mild or not is_contested:
        return {**kept, "weight": DEFAULT_CPU_WEIGHT}, f"feeds a GPU: {note}"
    first = FIRST_BESIDE_TURNS if choice.mode is Mode.ROTATE else FIRST_WEIGHT
    weight = first if needs <= _LITTLE * host.cpus else NEAR_WEIGHT
    note = f"{note}, before jobs on CPUs" if choice.mode in _UNBOUND else "before jobs on CPUs"
    return {**kept, "weight": weight}, f"feeds a GPU: {note}"


def turn_settings(
    sharing: GpuSharing, given: Mapping[str, Allocation], quantum_s: float
) -> dict[str, Settings]:
    """Return the turns of jobs, by id: each alone, in the order of the policy, for a time in
    proportion to its share of the queue's; the mean is `quantum_s`."""
    return {
        id_: {"group": number, "turn_s": round(part * quantum_s, 3), "queue": queue}
        for queue, ids in sharing.turns.items()
        for number, (id_, part) in enumerate(_parts({id_: given[id_] for id_ in ids}))
    }


def _parts(given: Mapping[str, Allocation]) -> list[tuple[str, float]]:
    """Return the ids of a queue's jobs in order, each with its turn as a part of the mean one. Of
    whom too little is known has the mean of the others."""
    known = [one.share for one in given.values() if one.share is not None and not one.unlimited]
    mean = math.fsum(known) / len(known) if known else 1.0
    shares = {
        id_: mean if one.share is None or one.unlimited else one.share for id_, one in given.items()
    }
    total = math.fsum(shares.values())
    order = sorted(shares, key=lambda id_: (given[id_].rank, -shares[id_]))
    return [(id_, max(SHORTEST_TURN, len(order) * shares[id_] / total)) for id_ in order]
