"""Pausing and unpausing containers."""

from __future__ import annotations

from dltools.engine.interface import Engine, GoneError, RefusedError


def set_state(engine: Engine, container_id: str, state: str) -> None:
    """Pause a container ("paused") or unpause it ("running"), unless it is in that state.

    Raises `GoneError` or `RefusedError`.
    """
    try:
        (engine.pause if state == "paused" else engine.unpause)(container_id)
    except RefusedError:
        if engine.inspect(container_id).state != state:
            raise


def unpause(engine: Engine, container_id: str) -> bool:
    """Unpause a container that may run, or may have ended, and tell whether it was paused.

    Raises `RefusedError` if the engine leaves it paused.
    """
    try:
        engine.unpause(container_id)
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
