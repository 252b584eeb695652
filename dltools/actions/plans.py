"""Plans, their actions, and what becomes of them: what dl-plan decides and dl-apply does."""

from __future__ import annotations

from collections.abc import Mapping
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
    """One change to one container. `expect` is what was in force when the plan was made, `to` the
    host that a migration goes to, `met` the target for which a model is delivered; `job` is the job
    that the container makes with others, whose turns it shares, `user` whose job it is, None where
    nothing says so."""

    id: int
    op: Op
    host: str
    container_id: str
    container_name: str
    set: Settings
    expect: Settings
    reason: str
    to: str | None = None
    met: TargetMet | None = None
    job: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision. `at` is the newest time in the data (RFC 3339), "" where there was none.

    `classes` are those that the policy put its jobs into: for each host, from a job's name to its
    class. `gain` says in one line what the plan is expected to bring. `state` is what the next run
    needs in order to go on as if it had seen all the data; it is empty where it is not kept.
    `is_live` says that the next plan follows as soon as there are new samples, and that the stream
    ends with a `close` record. `lease_s`: how long a single plan is good for (s), None where no
    next run is known. `covers`: ids of the containers that a single plan decides on, those too that
    are to stay as they are; None where it does not say. `nothing` says why there are no actions.
    """

    policy: str
    at: str
    params: Mapping[str, Any]
    input: Mapping[str, Any]
    next_s: float | None
    actions: tuple[Action, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    gain: str = ""
    classes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_live: bool = False
    lease_s: float | None = None
    covers: tuple[str, ...] | None = None
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one action: the settings before and after, and why."""

    id: int
    status: Status
    container_id: str
    container_name: str
    before: Settings = field(default_factory=Settings)
    after: Settings = field(default_factory=Settings)
    error: str | None = None
