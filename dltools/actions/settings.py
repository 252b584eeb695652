"""Engine settings of a container: its limits, and its turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from dltools.notation.limits import Limits


class TurnSettings(TypedDict, total=False):
    """The turn of a container: the number of the group that runs together, from 0 in order of the
    turns, and its length (s). Where turns are of another resource than the CPUs, `queue` names it;
    where they are shares of the time, `period_s` is the period in which it runs for so long,
    `asked` how much of the resource it shall have, such as 0.3, and `had` what it had before."""

    group: int
    turn_s: float
    queue: str
    period_s: float
    asked: float
    had: float


class Settings(Limits, TurnSettings, total=False):
    """What a plan wants of a container: its limits and its turn; or what it has, before or after an
    action or at a sample. What is absent stays as it is, or is not known.

    `state`: the engine's word, such as running. A migration gives the `host` of the container, and
    the id of the new `container`; a delivery the directory of the copy, `delivered`, its `size`
    (bytes) and `sha256`.
    """

    state: str
    host: str
    container: str
    delivered: str
    size: int
    sha256: str


def as_found(settings: Mapping[str, object]) -> Settings:
    """Return a copy of settings as those of a container: an engine's answer, what a plan expects,
    or what a dry run would set."""
    return cast(Settings, {**settings})
