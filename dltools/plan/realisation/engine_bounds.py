"""What the engines of a host's jobs cannot do: which mode remains, what is left out of settings.

`rounds` asks for the mode that remains, `realise` keeps settings within it. Samples say what cannot
be done with each container, and under which cgroup its weight counts; where they say nothing, all
can be done. Where no two jobs are under one cgroup, as in pods of their own, weights do nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dltools.notation.limits import only
from dltools.plan.realisation.mode import OTHERS, Mode, ModeChoice
from dltools.plan.realisation.settings import Settings, Turn
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.job import Job

_PAUSE = "pause"
_NEEDS: Mapping[Mode, str] = {
    Mode.QUOTA: "cpus",
    Mode.WEIGHT: "weight",
    Mode.PRIORITY: "weight",
    Mode.ROTATE: _PAUSE,
    Mode.CORES: "cpuset",
}
"""What each mode needs."""

_LACKS: Mapping[str, str] = {
    "cpus": "sets no quota on any job here",
    "weight": "sets no weight on any job here",
    "cpuset": "sets no CPU list on any job here",
    _PAUSE: "pauses no job here",
}

_APART = "weights do nothing here, as no two jobs are under one cgroup"

_NEED_STREAM = "and a plan that may stay {}: a stream of plans, as of dl-probe -i, does"


def possible(
    choice: ModeChoice,
    jobs: Sequence[Job],
    *,
    is_asked: bool,
    is_lasting: bool = False,
    others: float | None = None,
) -> ModeChoice:
    """Return the choice if it can be done with any of the jobs, else what remains.

    Where fewer than two jobs may be paused, nobody takes turns: they queue by weights. Else a mode
    that was asked for (`is_asked`) stays, and is `unable`. Weights and turns stand in for each
    other, as far as one may pause: not where `others` use much of the CPUs. Where neither is
    possible, and for shares, quotas do. A plan that may stay (`is_lasting`) does neither.
    """
    is_alone = choice.mode is Mode.ROTATE and not _can_take_turns(jobs)
    if jobs[1:] and is_alone and _can(Mode.PRIORITY, jobs):
        why = f"{choice.why}; fewer than two jobs may be paused: they queue by weights"
        return replace(choice, mode=Mode.PRIORITY, why=why)
    if _can(choice.mode, jobs) or not (jobs[1:] or (jobs and is_asked)):
        return choice
    lacks = _lacking(_NEEDS[choice.mode], jobs)
    if is_asked:
        unable = f"--realize {choice.mode} is not possible: {lacks}; {_alternatives(jobs)}"
        return replace(choice, why=f"as asked; {unable}", unable=unable)
    if choice.is_even:
        return choice
    takes_turns = choice.mode is Mode.PRIORITY and _can_take_turns(jobs)
    is_crowded_out = others is not None and others >= OTHERS
    if is_lasting and (takes_turns or _can(Mode.QUOTA, jobs)):
        unable = (
            f"{lacks}, {_NEED_STREAM.format('pauses nobody' if takes_turns else 'sets no quotas')}"
        )
    elif takes_turns and not is_crowded_out:
        return replace(choice, mode=Mode.ROTATE, why=f"{choice.why}; {lacks}: jobs take turns")
    elif _can(Mode.QUOTA, jobs):
        why = f"{choice.why}; {lacks}: jobs have quotas"
        return replace(choice, mode=Mode.QUOTA, why=why, fills=True)
    elif takes_turns:
        unable = (
            f"{lacks}, and other programs use {100 * (others or 0):.0f} % of the CPUs: no turns"
        )
    else:
        unable = f"{lacks}; {_alternatives(jobs)}"
    return replace(choice, mode=Mode.WEIGHT, is_even=True, why=unable, unable=unable)


def within_engines(found: Realisation, jobs: Sequence[Job]) -> Realisation:
    """Return a realisation without what cannot be done with its jobs."""
    bound = {
        job.id: job.in_force.cannot
        for job in jobs
        if job.in_force.cannot and job.id in found.settings
    }
    if not bound:
        return found
    settings, notes = {**found.settings}, {**found.notes}
    need = _NEEDS[found.mode]
    for key, cannot in bound.items():
        settings[key] = _able(found.settings[key], cannot)
        if need in cannot and not found.unable:
            notes[key] = "; ".join(filter(None, (notes.get(key), _NOT_HERE[need])))
    return replace(found, settings=settings, notes=notes)


_NOT_HERE: Mapping[str, str] = {
    "cpus": "its engine sets no quota on it",
    "weight": "its engine sets no weight on it",
    "cpuset": "its engine sets no CPU list on it",
    _PAUSE: "its engine does not pause it",
}


def _able(wanted: Settings, cannot: frozenset[str]) -> Settings:
    lost = {*cannot, *(Turn.__annotations__ if _PAUSE in cannot else ())}
    return only(wanted, wanted.keys() - lost)


def can_weigh(jobs: Sequence[Job]) -> bool:
    """Tell whether weights can be set on any of the jobs, and compare."""
    return _can(Mode.WEIGHT, jobs)


def _can(mode: Mode, jobs: Sequence[Job]) -> bool:
    able = _able_to(_NEEDS[mode], jobs)
    return bool(able) and not (_NEEDS[mode] == "weight" and _are_apart(able))


def _able_to(need: str, jobs: Sequence[Job]) -> list[Job]:
    return [job for job in jobs if need not in job.in_force.cannot]


def _are_apart(jobs: Sequence[Job]) -> bool:
    """Tell whether each of several jobs is under another cgroup. A job whose parent is unknown is
    with others."""
    counts = Counter(job.in_force.cgroup_parent for job in jobs)
    return len(jobs) > 1 and None not in counts and max(counts.values()) == 1


def _lacking(need: str, jobs: Sequence[Job]) -> str:
    return _APART if _able_to(need, jobs) else f"the engine {_LACKS[need]}"


def _can_take_turns(jobs: Sequence[Job]) -> bool:
    return sum(_PAUSE not in job.in_force.cannot for job in jobs) > 1


def _alternatives(jobs: Sequence[Job]) -> str:
    """Return in words which modes can be done with jobs."""
    modes = [mode.value for mode in Mode if _can(mode, jobs)]
    if not modes:
        return "it can only be looked at"
    named = " or ".join(filter(None, (", ".join(modes[:-1]), modes[-1])))
    return f"--realize {named} is possible"
