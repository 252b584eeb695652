"""Why a plan has no actions: one line for people, made of what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dltools.actions.plans import AS_PLANNED
from dltools.actions.settings import Settings
from dltools.labels import ROLE, Role
from dltools.notation.limits import DEFAULTS
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.outcome.decisions import JobDecision, Realised
from dltools.plan.realisation.realise import NO_COMPARISON
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory
from dltools.text import listed

_NAMED = 3
"""How many containers or hosts a reason names."""

_listed = partial(listed, most=_NAMED)

_AS_ASKED = "as asked"
"""Why the mode is what it is, where somebody has asked for it."""

_HOW_TO_SHOW = (
    f"dl-probe --list-metrics shows what they report, --pattern finds more, the label "
    f"{ROLE}=training marks a training"
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
        own = [decision for decision in decisions if decision.host == host.name]
        reason = _of_host(host, realised[host.name], own, shareless)
        by_reason.setdefault(reason, []).append(host.name)
    if len(by_reason) == 1:
        return next(iter(by_reason))
    return "; ".join(f"{_listed(names)}: {reason}" for reason, names in by_reason.items())


def _of_host(
    host: HostHistory, realisation: Realisation, decided: Sequence[JobDecision], shareless: str
) -> str:
    running = sorted(host.containers.values(), key=lambda container: (container.name, container.id))
    if not running:
        return "no container runs, or the filters of dl-probe select none"
    if host.cpus <= 0:
        return "the number of CPUs is unknown"
    roles = (Role.TRAINING, Role.SERVER) if host.has_servers else (Role.TRAINING,)
    trainings = [container for container in running if container.standing.role in roles]
    if not trainings:
        return _no_training(running)
    jobs, silent = host.look()
    if not jobs and not silent:
        reasons = {decision.container_id: decision.reason for decision in decided}
        return _listed([f"{job.name} ({reasons.get(job.id, 'left alone')})" for job in trainings])
    if not jobs and not realisation.settings:
        verb = "has" if len(silent) == 1 else "have"
        return (
            f"{_listed([container.name for container in silent])} {verb} reported no progress yet; "
            "dl-probe --list-metrics shows what is found in their logs"
        )
    if shareless:
        return f"the policy {shareless} sets no limits"
    if realisation.unable:
        return realisation.unable
    if not realisation.settings:
        return "no round of the policy is due yet"
    return _as_planned(realisation, decided, len(jobs) + len(silent))


def _no_training(running: Sequence[ContainerHistory]) -> str:
    count = len(running)
    run = f"{count} containers run" if count > 1 else "1 container runs"
    whats = [(container.name, container.standing) for container in running]
    named = _listed(
        [f"{name} ({it.judgement.text if it.has_reported else it.role})" for name, it in whats]
    )
    what = "none is known to train" if count > 1 else "it is not known to train"
    return f"{run}, {what}: {named}; {_HOW_TO_SHOW}"


def _as_planned(realisation: Realisation, decided: Sequence[JobDecision], jobs: int) -> str:
    ours = [decision for decision in decided if decision.container_id in realisation.settings]
    if any(_is_limited(decision.present) for decision in ours):
        notes = ((job.name, realisation.notes.get(job.container_id, "")) for job in ours)
        apart = [f"{name} ({note})" for name, note in notes if NO_COMPARISON in note]
        return "; ".join([f"{AS_PLANNED} ({realisation.mode}: {realisation.why})", *apart[:_NAMED]])
    if jobs == 1:
        return f"one job alone, {_listed([decision.name for decision in ours])}: nothing to share"
    if realisation.why == _AS_ASKED:
        reasons = [f"{decision.name} ({decision.reason})" for decision in ours]
        return f"no job needs a limit: {_listed(reasons)}"
    return realisation.why.removeprefix(f"{_AS_ASKED}; ")


def _is_limited(present: Settings) -> bool:
    """Tell whether a container has other settings than a new one."""
    return any(value not in (None, DEFAULTS.get(name)) for name, value in present.items())
