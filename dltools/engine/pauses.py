"""Pausing containers, and why one must not be paused, whatever a plan says.

A pause looks like a failure to those who look whether a container answers: the engine's health
check, and members of a distributed job, who count the seconds between two signs of life.
"""

from __future__ import annotations

from collections.abc import Mapping

from dltools.engine.distributed import Membership, membership_at_start
from dltools.engine.interface import Container, Engine, GoneError, RefusedError
from dltools.engine.parts import Pauses, needed
from dltools.labels import JOB, LONGEST_PAUSE, MAY_PAUSE, longest_pause_s

HEALTH_CHECK = (
    f"it has a health check, which fails while it is paused; the label {MAY_PAUSE}=allow permits it"
)
ELSEWHERE = f"it talks to members elsewhere; the label {MAY_PAUSE}=allow permits it"
NEVER = f"its label {LONGEST_PAUSE} says never"


def may_pause(labels: Mapping[str, str]) -> bool:
    """Tell whether labels allow a pause that others could take for a failure."""
    return labels.get(MAY_PAUSE, "").strip().lower() == "allow"


def why_no_pause(container: Container, member: Membership | None = None) -> str:
    """Return why a container must not be paused, "" if it may be.

    `member`: what its processes show; without it, what it was started with does. A member waits
    with the others of its job where all are known to be on its host. That cannot be known where
    nobody says how many there are, or which.
    """
    if container.refuses.pause:
        return container.refuses.pause
    if longest_pause_s(container.labels) == 0:
        return NEVER
    if may_pause(container.labels):
        return ""
    if member is None:
        member = membership_at_start(container)
    if member is None:
        return ""
    has_name = member.job or container.service.name or JOB in container.labels
    return "" if has_name and member.containers is not None else ELSEWHERE


def is_paused(engine: Engine, container_id: str) -> bool:
    """Tell whether a container is there, and paused."""
    try:
        return engine.inspect(container_id).state == "paused"
    except (GoneError, RefusedError):
        return False


def set_state(engine: Engine, container_id: str, state: str) -> None:
    """Pause a container ("paused") or unpause it ("running"), unless it is in that state.

    Raises `GoneError` or `RefusedError`.
    """
    try:
        able = needed(engine, Pauses)
        (able.pause if state == "paused" else able.unpause)(container_id)
    except RefusedError:
        if engine.inspect(container_id).state != state:
            raise


def unpause(engine: Engine, container_id: str) -> bool:
    """Unpause a container that may run, or may have ended, and tell whether it was paused.

    Raises `RefusedError` if the engine leaves it paused.
    """
    try:
        needed(engine, Pauses).unpause(container_id)
    except GoneError:
        return False
    except RefusedError:  # it runs already, has ended, or the engine cannot just now
        try:
            if engine.inspect(container_id).state == "paused":
                raise
        except GoneError:
            pass
        return False
    return True
