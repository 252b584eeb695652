"""Why an action is not carried out."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from dltools.engine.interface import (
    ALL_CAPABILITIES,
    LIMITS,
    Capabilities,
    Container,
    Engine,
    GoneError,
)
from dltools.errors import DltoolsError
from dltools.labels import PROTECT, is_true
from dltools.plan.records import Action, Op, Result, Status

GONE = "the container no longer exists"
FOREIGN = "somebody else has changed its settings since dl-apply did; --force overrides"
PAUSED_ELSEWHERE = "paused, not by dl-apply"

_SKEW = timedelta(minutes=1)
"""How far the clocks of two hosts that are in order may differ (ours)."""

_MOMENTS_S = (0.0, 0.02, 0.05, 0.2)
_WITH_PROCESSES = ("running", "paused")


def has_processes(container: Container) -> bool:
    """Tell whether a container runs or is paused."""
    return container.state in _WITH_PROCESSES


def unsupported(
    action: Action, host: str, engine_can: Capabilities = ALL_CAPABILITIES
) -> str | None:
    """Return why dl-apply cannot carry out an action on the engine of a host, None if it can."""
    if action.host != host:
        return f"the action is for host {action.host}, and this engine is on host {host}"
    unknown = [name for name in action.set if name not in LIMITS]
    if action.op is Op.UPDATE and unknown:
        return f"dl-apply cannot set {', '.join(unknown)}"
    unable = [name for name in action.set if name in LIMITS and name not in engine_can.limits]
    if action.op is Op.UPDATE and unable:
        return f"the engine of host {host} cannot set {', '.join(unable)}"
    if action.op in (Op.PAUSE, Op.UNPAUSE, Op.ROTATE) and not engine_can.pauses:
        return f"the engine of host {host} cannot pause containers"
    if action.op is Op.MIGRATE and not engine_can.creates:
        return f"the engine of host {host} cannot move containers"
    return None


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


def _has_restarted(container: Container, planned_at: datetime | None) -> bool:
    """Tell whether a container was started after the plan was made. One that was started in the
    future says that the clock was set back, and no more."""
    if planned_at is None or container.started is None:
        return False
    is_told = container.started <= datetime.now(UTC) + _SKEW
    return is_told and container.started > planned_at


def refusal(found: Result, container: Container, planned_at: datetime | None) -> Result | None:
    """Return the result of an action on a protected container, or on one that has stopped or
    restarted since the plan; None if the container may be changed."""
    if is_true(container.labels.get(PROTECT)):
        return replace(found, status=Status.SKIPPED, error=f"protected by its label {PROTECT}")
    if not has_processes(container):
        return replace(found, status=Status.STALE, error=f"the container is {container.state}")
    if _has_restarted(container, planned_at):
        reason = "the container has restarted since the plan was made"
        return replace(found, status=Status.STALE, error=reason)
    return None
