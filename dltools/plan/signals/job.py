"""What policies see of a job. It is read-only; `ContainerHistory` has these attributes, and more.

It stands alone because plug-ins import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dltools.plan.signals.container_history import Standing
from dltools.plan.signals.in_force import InForce, Member, Membership, Owner, Runtime
from dltools.plan.signals.progress import Progress
from dltools.plan.signals.resource_use import Use


class Job(Protocol):
    """A training or a server: a container, or several that are members of it."""

    @property
    def id(self) -> str:
        """Its container's id: by it a policy names the job in its decision."""

    @property
    def name(self) -> str:
        """Its container's name."""

    @property
    def run_id(self) -> str:
        """Differs for each run of a container: by it a policy remembers a job."""

    @property
    def arrived(self) -> int:
        """When this run was first seen (microseconds since the epoch)."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of its container, and those that the user gave it."""

    @property
    def managed(self) -> bool:
        """Whether a plan has ever given it a share or a setting, also in an earlier run."""

    @property
    def user(self) -> str:
        """The user whose job it is, "" if unknown."""

    @property
    def priority(self) -> float:
        """What it counts among the jobs of its user, 1 by default."""

    @property
    def use(self) -> Use:
        """What it has used. Public are `threads`, `uses_gpu`, `gpus`, `resource`, `effort`,
        `effort_unit`, `effort_at` and `attained`."""

    @property
    def progress(self) -> Progress:
        """What it has reported. Public are `metrics`, `targets`, `epoch`, `step`, `met_first` and
        `met_final`. `metrics` has a series for each metric, of which `times` (microseconds),
        `values` and `steps` are public."""

    @property
    def in_force(self) -> InForce:
        """The limits in force, and what its engine cannot do with it."""

    @property
    def owner(self) -> Owner:
        """The limits that its owner asked for."""

    @property
    def standing(self) -> Standing:
        """What it is to dltools; `role` is public."""

    @property
    def may_be_paused(self) -> bool:
        """Whether it can be paused, and is certainly a training."""

    @property
    def runtime(self) -> Runtime:
        """What starts threads in it."""

    @property
    def membership(self) -> Membership:
        """Which containers make it together."""

    @property
    def containers(self) -> tuple[Member, ...]:
        """Its containers: itself if it has no members."""
