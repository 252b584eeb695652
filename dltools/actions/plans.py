"""Plans, their actions, and what becomes of them: what dl-plan decides and dl-apply does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dltools.actions.settings import Settings
from dltools.observations.targets import TargetMet

AS_PLANNED = "limits are already as planned"
"""How `Plan.nothing` begins where all is as it should be."""


class Op(StrEnum):
    """What an action does to its container."""

    UPDATE = "update"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    ROTATE = "rotate"  # take turns: `group`, the turn's length `turn_s`, maybe `queue`, `period_s`
    MIGRATE = "migrate"
    DELIVER = "deliver"


class Status(StrEnum):
    """What became of an action."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"  # it was so already
    PLANNED = "planned"  # a dry run: it would have been applied
    STALE = "stale"  # the container is not as the plan expects it
    FAILED = "failed"
    SKIPPED = "skipped"  # on purpose: protected, another host, not possible safely


@dataclass(frozen=True, slots=True)
class Action:
    """One change to one container."""

    id: int
    """Its number, unique in its plan."""

    op: Op
    """What it does."""

    host: str
    """The name of the container's host."""

    container_id: str
    """The engine's id of the container."""

    container_name: str
    """The name of the container."""

    set: Settings
    """The settings that it is to get; those that are absent stay as they are."""

    expect: Settings
    """The settings that were in force when the plan was made."""

    reason: str
    """Why, with the numbers, in a line for people."""

    to: str | None = None
    """The host that a migration goes to, None for other actions."""

    met: TargetMet | None = None
    """The target for which a model is delivered, None for other actions."""

    job: str | None = None
    """The job that the container makes with others, whose turns it shares; None for one alone."""

    user: str | None = None
    """Whose job it is, None where nothing says so."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision."""

    policy: str
    """The name of the policy that made it."""

    at: str
    """The newest time in the data (RFC 3339), "" where there was none."""

    params: Mapping[str, Any]
    """The policy's parameters, and how its shares were realised, by name."""

    input: Mapping[str, Any]
    """What was read: how many rows, and from when to when."""

    next_s: float | None
    """Seconds until the policy's next round, None where time brings none."""

    actions: tuple[Action, ...]
    """What is to be done, in order."""

    state: Mapping[str, Any] = field(default_factory=dict)
    """What the next run needs to go on as if it had seen all the data; {} where it is not kept."""

    gain: str = ""
    """What the plan is expected to bring, in a line; "" where nothing is said."""

    classes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The classes that the policy put its jobs into: by host, from a job's name to its class."""

    is_live: bool = False
    """Whether the next plan follows as soon as there are new samples, and the stream ends with a
    `close` record."""

    lease_s: float | None = None
    """How long a single plan is good for (s), None where no next run is known."""

    covers: tuple[str, ...] | None = None
    """Ids of the containers that a plan decides on, those too that are to stay as they are; None
    where it does not say."""

    nothing: str = ""
    """Why there are no actions, "" where there are some."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one action."""

    id: int
    """The number of the action."""

    status: Status
    """What became of it."""

    container_id: str
    """The engine's id of the container."""

    container_name: str
    """The name of the container."""

    before: Settings = field(default_factory=Settings)
    """The settings that were in force before."""

    after: Settings = field(default_factory=Settings)
    """The settings that are in force now."""

    error: str | None = None
    """What was wrong, or, where it was applied, what somebody else had changed; None for
    neither."""


OnResult = Callable[[Result], None]
"""What is called with each result as soon as there is one."""
