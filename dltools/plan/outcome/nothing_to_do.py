"""Why a plan has no actions: one line for people, made of what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dltools.labels import ROLE, Role
from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.outcome.decisions import JobDecision, Realised
from dltools.plan.realisation.realise import NO_COMPARISON
from dltools.plan.realisation.settings import Settings
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory
from dltools.text import listed

_NAMED = 3
"""How many containers or hosts a reason names."""

_listed = partial(listed, most=_NAMED)

AS_PLANNED = "limits are already as planned"
"""How the reason begins where settings are in force that the plan would set."""

_AS_ASKED = "as asked"
"""Why the mode is what it is, where somebody has asked for it."""

_HOW_TO_SHOW = (
    f"dl-probe --list-metrics shows what they report, --pattern finds more, the label "
    f"{ROLE}=training says it"
)


def why_nothing(
    hosts: Sequence[HostHistory],
    realised: Realised,
    decisions: Sequence[JobDecision],
    shareless: str,
) -> str:
    """Return why nothing changes on any host; hosts with the same reason are named together.

    `shareless`: the policy's name if it gives no shares, else "".
    """
    if not hosts:
        return "the input has no sample of a host"
    by_reason: dict[str, list[str]] = {}
    for host in hosts:
        own = [one for one in decisions if one.host == host.name]
        reason = _of_host(host, realised[host.name], own, shareless)
        by_reason.setdefault(reason, []).append(host.name)
    if len(by_reason) == 1:
        return next(iter(by_reason))
    return "; ".join(f"{_listed(names)}: {reason}" for reason, names in by_reason.items())


def _of_host(
    host: HostHistory, found: Realisation, decided: Sequence[JobDecision], shareless: str
) -> str:
    running = sorted(host.containers.values(), key=lambda one: (one.name, one.id))
    if not running:
        return "no container runs, or the filters of dl-probe select none"
    if host.cpus <= 0:
        return "the number of CPUs is unknown"
    roles = (Role.TRAINING, Role.SERVER) if host.has_servers else (Role.TRAINING,)
    trainings = [one for one in running if one.standing.role in roles]
    if not trainings:
        return _no_training(running)
    jobs, silent = host.look()
    if not jobs and not silent:
        reasons = {one.container_id: one.reason for one in decided}
        return _listed([f"{one.name} ({reasons.get(one.id, 'left alone')})" for one in trainings])
    if not jobs and not found.settings:
        verb = "has" if len(silent) == 1 else "have"
        return (
            f"{_listed([one.name for one in silent])} {verb} reported no progress yet; "
            "dl-probe --list-metrics shows what is found in their logs"
        )
    if shareless:
        return f"the policy {shareless} sets no limits"
    if found.unable:
        return found.unable
    if not found.settings:
        return "no round of the policy has been due yet"
    return _as_planned(found, decided, len(jobs) + len(silent))


def _no_training(running: Sequence[ContainerHistory]) -> str:
    count = len(running)
    run = f"{count} containers run" if count > 1 else "1 container runs"
    whats = [(one.name, one.standing) for one in running]
    named = _listed(
        [f"{name} ({it.judgement.text if it.has_reported else it.role})" for name, it in whats]
    )
    what = "none is known to train" if count > 1 else "it is not known to train"
    return f"{run}, {what}: {named}; {_HOW_TO_SHOW}"


def _as_planned(found: Realisation, decided: Sequence[JobDecision], jobs: int) -> str:
    ours = [one for one in decided if one.container_id in found.settings]
    if any(_is_limited(one.present) for one in ours):
        apart = [f"{one.name} ({why})" for one in ours if (why := _lies_apart(one, found))]
        return "; ".join([f"{AS_PLANNED} ({found.mode}: {found.why})", *apart[:_NAMED]])
    if jobs == 1:
        return f"one job alone, {_listed([one.name for one in ours])}: nothing to share"
    if found.why == _AS_ASKED:
        return f"no job needs a limit: {_listed([f'{one.name} ({one.reason})' for one in ours])}"
    return found.why.removeprefix(f"{_AS_ASKED}; ")


def _lies_apart(job: JobDecision, found: Realisation) -> str:
    """Return why a weight of this job would say nothing, "" if it would."""
    note = found.notes.get(job.container_id, "")
    return note if NO_COMPARISON in note else ""


def _is_limited(present: Settings) -> bool:
    """Tell whether a container has other settings than a new one."""
    usual = (None, DEFAULT_CPU_WEIGHT)
    return any(
        value not in (usual if name == "weight" else (None,)) for name, value in present.items()
    )
