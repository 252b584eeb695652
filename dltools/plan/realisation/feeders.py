"""Containers that feed a GPU go before those that compute on CPUs: an idle GPU costs more.

A job that has used a GPU in the last minutes does not queue for CPUs, and is never paused or capped
to free CPUs. Where CPUs are contested, its weight is so high that it gets what it wants at once; it
wants little, because the GPU does the work. Feeders that together want more than half of the CPUs
get a smaller weight: they compute on CPUs too. Those that share a GPU may take turns there, see
`dltools.plan.hosts.gpu_shares`. All of it is ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from dltools.actions.settings import Settings
from dltools.notation.limits import DEFAULT_WEIGHT
from dltools.plan.policy.interface import HostState
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.shared_host import Realisation, SharedHost
from dltools.plan.signals.busy_threads import cpus_together, is_serving
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
    Mode.CORES: ({"cpuset": None}, "all CPUs"),
}
"""What frees a feeder from the order of a mode."""


def feeders(host: SharedHost, state: HostState) -> Realisation:
    """Return the settings of the jobs that feed GPUs; its notes tell which these are."""
    is_first, on_gpus = host.choice.queue.feeders == "first", host.choice.on_gpus
    jobs = [
        job
        for job in host.jobs
        if is_first
        and job.use.gpu_use.is_feeder(host.now)
        and (not is_serving(job) or job.id in on_gpus.notes)
    ]
    setting, note = _setting(host.choice, state, cpus_together(jobs, host.cpus))
    settings: dict[str, Settings] = {}
    notes: dict[str, str] = {}
    for job in jobs:
        own, what = setting | on_gpus.settings.get(job.id, {}), note
        if job.id in on_gpus.turns:
            own, what = on_gpus.turns[job.id], ""
        settings[job.id] = own
        notes[job.id] = joined(what, on_gpus.notes.get(job.id))
    return host.realisation(on_gpus.note, settings=settings, notes=notes)


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
