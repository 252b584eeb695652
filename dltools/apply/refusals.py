"""Why an action is not carried out: the rules of the user, and the state of its container.

The actuator asks before it changes anything. What keeps a job from being moved to another host
stands in `dltools/apply/migrate/movable.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dltools.actions.plans import Action, OnResult, Op, Plan, Result, Status
from dltools.actions.settings import as_found
from dltools.engine.interface import ALL_CAPABILITIES, Capabilities, Container, Engine, GoneError
from dltools.engine.kernel_reading import ROOT, read_text
from dltools.engine.limits.cpu_limits import out_of_bounds
from dltools.engine.pauses import why_no_pause
from dltools.errors import DltoolsError
from dltools.labels import PROTECT, QOE, has_labels, is_true
from dltools.notation.limits import CPU_LIMITS, written_name
from dltools.notation.times import format_seconds

GONE = "the container no longer exists"
FOREIGN = "somebody else has changed its settings since dl-apply did; --force overrides"
PAUSED_ELSEWHERE = "paused, not by dl-apply"
SIGNALLED = "somebody has sent it a signal"
NOT_NAMED = "--name does not select it"
UPDATED = "somebody has changed its settings"
CHANGED = "its settings have changed since the plan was made"
NO_DELIVERIES = "give --deliver-dir to have models delivered"
NO_MIGRATIONS = "name both hosts with --host to have jobs moved"

_SKEW = timedelta(minutes=1)
"""How far the clocks of two hosts that are in order may differ (ours)."""

_MOMENTS_S = (0.0, 0.02, 0.05, 0.2)


@dataclass(frozen=True, slots=True)
class Rules:
    """The bounds that a user sets. The defaults allow everything."""

    labels: Sequence[str] = ()
    """A container has all of these (KEY or KEY=VALUE)."""

    names: Sequence[Any] = ()
    """Compiled expressions, one of which matches a container's name; () for any name."""

    max_changes: int | None = None
    """The most containers that a plan changes, None for any number."""

    max_age_s: float | None = None
    """How old a plan is at most (s), None for any age."""

    is_forced: bool = False
    """Whether to change what somebody else has changed meanwhile, too."""

    @property
    def selects_all(self) -> bool:
        """Whether neither names nor labels are asked for."""
        return not self.names and not self.labels

    def refusal(self, container: Container) -> str | None:
        """Return why a container may not be changed, None if it may be."""
        if self.names and not any(name.search(container.name) for name in self.names):
            return NOT_NAMED
        if not has_labels(container.labels, self.labels):
            return "it lacks a label that --label asks for"
        if is_own(container):
            return "dl-apply itself runs in it"
        return None

    def refusal_of_age(self, planned_at: datetime | None) -> str | None:
        """Return why a plan is too old, None if it is not."""
        if self.max_age_s is None:
            return None
        if planned_at is None:
            return "the plan does not say how old it is, and --max-age is given"
        age = time.time() - planned_at.timestamp()
        if age <= self.max_age_s:
            return None
        return f"the plan is {format_seconds(age)} old, and --max-age allows {self.max_age_s:g} s"

    def refusal_of_number(self, changes: int) -> str | None:
        """Return why a plan may make no further changes, None if it may."""
        if self.max_changes is None or changes < self.max_changes:
            return None
        return f"the plan has made {changes} changes, as many as --max-changes allows"


def is_own(container: Container, root: Path = ROOT) -> bool:
    """Tell whether this process runs in a container: its cgroup is the container's, or the engine
    has mounted the container's files (/etc/hostname and others) here."""
    if container.holds("self", root):
        return True
    lines = read_text(f"{root}/proc/self/mountinfo").splitlines()
    mounted = (line.split()[3] for line in lines if line.count(" ") > 3)
    return any(f"containers/{container.id}/" in source for source in mounted)


def unsupported(
    action: Action, host: str, engine_can: Capabilities = ALL_CAPABILITIES
) -> str | None:
    """Return why dl-apply cannot carry out an action on the engine of a host, None if it can."""
    if action.host != host:
        return f"the action is for host {action.host}, and this engine is on host {host}"
    unknown = [name for name in action.set if name not in CPU_LIMITS]
    if action.op is Op.UPDATE and unknown:
        return f"dl-apply cannot set {', '.join(unknown)}"
    unable = [name for name in action.set if name in CPU_LIMITS and name not in engine_can.limits]
    cannot = ""
    if action.op is Op.UPDATE and unable:
        cannot = f"set {', '.join(map(written_name, unable))}"
    if action.op in (Op.PAUSE, Op.UNPAUSE, Op.ROTATE) and not engine_can.pauses:
        cannot = "pause containers"
    if action.op is Op.MIGRATE and not engine_can.creates:
        cannot = "move containers"
    if not cannot:
        return None
    why = f": {engine_can.why}" if engine_can.why else ""
    return f"the engine of host {host} cannot {cannot}{why}"


def unsettable(action: Action, container: Container) -> str | None:
    """Return why a container cannot have what an action would set, None if it can."""
    if action.op is not Op.UPDATE:
        return None
    impossible = container.refuses.limits
    reasons = (impossible[name] for name in action.set if name in impossible)
    return "; ".join(dict.fromkeys(reasons)) or None


def unleased(action: Action, engine_can: Capabilities, *, is_leased: bool) -> str | None:
    """Return why an action that would stay is not carried out, None if it may be. Turns end with
    their run by themselves."""
    if is_leased or not engine_can.leases_only or action.op not in (Op.UPDATE, Op.PAUSE):
        return None
    return "the engine takes only changes with a lease: give --lease, such as --lease 10m"


def refusal(result: Result, container: Container, planned_at: datetime | None) -> Result | None:
    """Return the result of an action on a protected container, or on one that has stopped or
    restarted since the plan; None if the container may be changed."""
    if is_true(container.labels.get(PROTECT)):
        return replace(result, status=Status.SKIPPED, error=f"protected by its label {PROTECT}")
    if not has_processes(container):
        return replace(result, status=Status.STALE, error=f"the container is {container.state}")
    if _has_restarted(container, planned_at):
        reason = "the container has restarted since the plan was made"
        return replace(result, status=Status.STALE, error=reason)
    return None


def _has_restarted(container: Container, planned_at: datetime | None) -> bool:
    """Tell whether a container was started after the plan was made. One that was started in the
    future says that the clock was set back, and no more."""
    if planned_at is None or container.started is None:
        return False
    is_told = container.started <= datetime.now(UTC) + _SKEW
    return is_told and container.started > planned_at


def refusal_of_turn(container: Container, *, has_turn: bool) -> str | None:
    """Return why a container takes no turns, None if it may. `has_turn` says whether it does."""
    if QOE in container.labels:
        return f"it serves (label {QOE}): dl-apply never pauses it"
    if container.state == "paused" and not has_turn:
        return "it is paused already, and not by dl-apply"
    return why_no_pause(container) or None


_TAKES_TURNS = (Status.APPLIED, Status.UNCHANGED, Status.PLANNED)
"""What becomes of the action of a container that takes turns."""


def takes_turns_with_others(action: Action) -> bool:
    """Tell whether an action gives a turn to one of several containers of a job."""
    return action.op is Op.ROTATE and action.job is not None


def all_or_none(actions: Sequence[Action], results: Sequence[Result]) -> list[Result]:
    """Return the results, in which no container of a job takes turns where another one cannot: each
    would wait for the other."""
    pairs = list(zip(actions, results, strict=True))
    failed = {
        action.job: action.container_name
        for action, result in pairs
        if takes_turns_with_others(action) and result.status not in _TAKES_TURNS
    }
    revised = []
    for action, result in pairs:
        name = failed.get(action.job) if takes_turns_with_others(action) else None
        if name is not None and result.status in _TAKES_TURNS:
            error = f"{name}, of the same job, cannot take turns"
            result = replace(result, status=Status.SKIPPED, after={}, error=error)
        revised.append(result)
    return revised


def missing(engine: Engine, action: Action) -> str:
    """Return why an action's container is not there: it is gone, or was replaced by another."""
    try:
        other = engine.inspect(action.container_name)
    except DltoolsError:
        return GONE
    if other.name == action.container_name and other.id != action.container_id:
        return f"container {other.id[:12]} has replaced it since the plan was made"
    return GONE


def ended_meanwhile(engine: Engine, failed: Result) -> Result:
    """Return the result of a change that failed: stale, if its container has ended meanwhile.

    The engine learns of an end a moment after the kernel.
    """
    for pause_s in _MOMENTS_S:
        time.sleep(pause_s)
        try:
            container = engine.inspect(failed.container_id)
        except GoneError:
            return replace(failed, status=Status.STALE, error=GONE)
        except DltoolsError:
            return failed
        if not has_processes(container):
            reason = f"the container is {container.state}"
            return replace(failed, status=Status.STALE, error=reason)
    return failed


def has_processes(container: Container) -> bool:
    """Tell whether a container runs or is paused."""
    return container.state in ("running", "paused")


def check_offline(plan: Plan, on_result: OnResult) -> None:
    """Report what a dry run would report if every container were as the plan expects."""
    for action in plan.actions:
        reason = out_of_bounds(action.set)
        status = Status.FAILED if reason else Status.PLANNED
        before, after = as_found(action.expect), as_found(action.expect if reason else action.set)
        id_, name = action.container_id, action.container_name
        on_result(Result(action.id, status, id_, name, before, after, reason))
