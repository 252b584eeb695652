"""Why a step of a migration is not taken."""

from __future__ import annotations

from collections.abc import Mapping

from dltools.engine.interface import Engine
from dltools.errors import DltoolsError


class FailedError(Exception):
    """A step cannot be taken, and the migration is to be rolled back; the message says why."""


class WaitError(DltoolsError):
    """A step cannot be taken now, and must be taken again later; the message says why."""


def engine_of(engines: Mapping[str, Engine], host: str) -> Engine:
    """Return the engine of a host. Raises `WaitError` where this run has none."""
    try:
        return engines[host]
    except KeyError:
        raise WaitError(f"host {host} is not among the hosts of this run") from None
