"""What bounds settings: what the engines of a host's jobs cannot do, and what owners asked for.

`rounds` asks for the mode that remains, `realise` keeps settings within the bounds. Samples say
what cannot be done with each container, and under which cgroup its weight counts; where they say
nothing, all can be done. Where no two jobs are under one cgroup, as in pods of their own, weights
do nothing.

Of what owners asked for at start, quotas and CPU lists are bounds, and weights are multiplied by
the owner's (see `Owner`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dltools.actions.settings import Settings, TurnSettings
from dltools.notation.limits import DEFAULT_WEIGHT, only, whole_weight
from dltools.notation.resources import format_cpus, parse_cpus
from dltools.plan.realisation.mode import OTHERS, ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.in_force import Owner
from dltools.plan.signals.job import Job
from dltools.text import joined

_PAUSE = "pause"
_LACKS: Mapping[str, str] = {
    "cpus": "sets no quota on {}",
    "weight": "sets no weight on {}",
    _PAUSE: "pauses no job here",
}

_APART = "weights do nothing here, because no two jobs are under one cgroup"

_NEED_STREAM = "and a plan that may stay {}: a stream of plans, as from dl-probe -i, does"


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
    that was asked for (`is_asked`) stays, and is `unable`. A plan that may stay (`is_lasting`)
    pauses nobody, and sets no quotas. `others`: the share of the CPUs that programs use which are
    no jobs.
    """
    is_alone = choice.mode is Mode.ROTATE and not _can_take_turns(jobs)
    if jobs[1:] and is_alone and can_be_done(Mode.PRIORITY, jobs):
        why = f"{choice.why}; fewer than two jobs may be paused: they queue by weights"
        return replace(choice, mode=Mode.PRIORITY, why=why)
    lacks = _lacks(choice.mode, jobs)
    if not lacks or not (jobs[1:] or (jobs and is_asked)):
        return choice
    if is_asked:
        unable = f"--realize {choice.mode} is not possible: {lacks}; {_alternatives(jobs)}"
        return replace(choice, why=f"as asked; {unable}", unable=unable)
    if choice.is_even:
        return choice
    return _instead(choice, lacks, jobs, others or 0.0, is_lasting=is_lasting)


def _instead(
    choice: ModeChoice, lacks: str, jobs: Sequence[Job], others: float, *, is_lasting: bool
) -> ModeChoice:
    """Return what takes the place of a mode that is not possible: turns for an order by weights,
    unless `others` use much of the CPUs, which a pause does not stop; else quotas."""
    takes_turns = choice.mode is Mode.PRIORITY and _can_take_turns(jobs)
    has_quotas = can_be_done(Mode.QUOTA, jobs)
    if is_lasting and (takes_turns or has_quotas):
        what = "pauses nobody" if takes_turns else "sets no quotas"
        unable = f"{lacks}, {_NEED_STREAM.format(what)}"
    elif takes_turns and others < OTHERS:
        return replace(choice, mode=Mode.ROTATE, why=f"{choice.why}; {lacks}: jobs take turns")
    elif has_quotas:
        why = f"{choice.why}; {lacks}: jobs have quotas"
        return replace(choice, mode=Mode.QUOTA, why=why, fills=True)
    elif takes_turns:
        unable = f"{lacks}, and other programs use {100 * others:.0f} % of the CPUs: no turns"
    else:
        unable = f"{lacks}; {_alternatives(jobs)}"
    return replace(choice, mode=Mode.WEIGHT, is_even=True, why=unable, unable=unable)


def within_bounds(
    realisation: Realisation, jobs: Sequence[Job], cpus: float, *, respects_owners: bool
) -> Realisation:
    """Return a realisation without what cannot be done with its jobs, and within what their owners
    asked for if that counts, on a host of so many CPUs (0: unknown)."""
    settings, notes, need = {**realisation.settings}, {**realisation.notes}, _need(realisation.mode)
    here = "does not pause it" if need == _PAUSE else _LACKS[need].format("it")
    for job in jobs:
        if job.id not in realisation.settings:
            continue
        cannot, setting = job.in_force.cannot, realisation.settings[job.id]
        said = [f"its engine {here}"] if need in cannot and not realisation.unable else []
        if cannot:
            lost = {*cannot, *(TurnSettings.__annotations__ if _PAUSE in cannot else ())}
            setting = only(setting, setting.keys() - lost)
        if respects_owners:
            setting = _within_owner(setting, job.owner, cpus)
            said += _owners_notes(setting, job.owner)
        settings[job.id] = setting
        notes[job.id] = joined(realisation.notes.get(job.id), *said)
    return replace(realisation, settings=settings, notes=notes)


def _within_owner(setting: Settings, owner: Owner, cpus: float) -> Settings:
    """Return settings within what an owner asked for.

    No quota becomes the owner's, and all CPUs become the owner's list. A weight is multiplied by
    the owner's own, as a multiple of the default.
    """
    settings = setting.copy()
    if "cpus" in settings and owner.cpus is not None and not 0 < cpus <= owner.cpus:
        planned = settings["cpus"]
        settings["cpus"] = owner.cpus if planned is None else min(owner.cpus, planned)
    if "weight" in settings:
        settings["weight"] = whole_weight(settings["weight"] * owner.ratio)
    if "cpuset" in settings and owner.cpuset is not None:
        listed = set(parse_cpus(owner.cpuset)) & set(parse_cpus(settings["cpuset"] or owner.cpuset))
        settings["cpuset"] = format_cpus(sorted(listed)) if listed else owner.cpuset
    return settings


def _owners_notes(setting: Settings, owner: Owner) -> Iterator[str]:
    """Yield what an owner's wish has made of a setting."""
    if setting.get("cpus") is not None and setting["cpus"] == owner.cpus:
        yield f"its owner asked for {owner.cpus:g} CPUs at most"
    if "weight" in setting and owner.ratio != 1:
        yield f"its owner asked for a weight of {owner.ratio * DEFAULT_WEIGHT:g}"
    if "cpuset" in setting and owner.cpuset is not None:
        yield f"its owner asked for CPUs {owner.cpuset}"


def _need(mode: Mode) -> str:
    """Return what an engine must be able to do for a mode."""
    return _PAUSE if mode is Mode.ROTATE else mode.limit


def can_be_done(mode: Mode, jobs: Sequence[Job]) -> bool:
    """Tell whether a mode can be done with any of the jobs."""
    return not _lacks(mode, jobs)


def _lacks(mode: Mode, jobs: Sequence[Job]) -> str:
    """Return why a mode can be done with none of the jobs, "" where it can. A job whose cgroup is
    unknown is with others."""
    need = _need(mode)
    able = [job.in_force for job in jobs if need not in job.in_force.cannot]
    if not able:
        return f"the engine {_LACKS[need].format('any job here')}"
    parents = {in_force.cgroup_parent for in_force in able}
    is_apart = None not in parents and 1 < len(able) == len(parents)
    return _APART if need == "weight" and is_apart else ""


def _can_take_turns(jobs: Sequence[Job]) -> bool:
    return sum(_PAUSE not in job.in_force.cannot for job in jobs) > 1


def _alternatives(jobs: Sequence[Job]) -> str:
    """Return in words which modes can be done with jobs."""
    modes = [mode.value for mode in Mode if can_be_done(mode, jobs)]
    if not modes:
        return "it can only be looked at"
    named = " or ".join(filter(None, (", ".join(modes[:-1]), modes[-1])))
    return f"--realize {named} is possible"
