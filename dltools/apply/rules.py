"""What a run of dl-apply may change: which containers, how many, and by how old a plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from dltools.engine import cgroup
from dltools.engine.interface import Container
from dltools.engine.kernel_files import ROOT, read_text
from dltools.labels import has_labels


@dataclass(frozen=True, slots=True)
class Rules:
    """The bounds that a user sets. The defaults allow everything.

    Containers have all `labels` (KEY or KEY=VALUE) and a name that one of the compiled expressions
    `names` matches (none: any name). A plan changes `max_changes` containers at most and is
    `max_age_s` seconds old at most. `is_forced` also changes what somebody else has changed
    meanwhile.
    """

    labels: Sequence[str] = ()
    names: Sequence[Any] = ()
    max_changes: int | None = None
    max_age_s: float | None = None
    is_forced: bool = False

    @property
    def selects_all(self) -> bool:
        """Whether neither names nor labels are asked for."""
        return not self.names and not self.labels

    def refusal(self, container: Container) -> str | None:
        """Return why a container may not be changed, None if it may be."""
        if self.names and not any(name.search(container.name) for name in self.names):
            return "its name is not among those that --name selects"
        if not has_labels(container.labels, self.labels):
            return "it lacks a label that --label asks for"
        if is_own(container.id):
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
        return f"the plan is {age:.3g} s old, and --max-age allows {self.max_age_s:g} s"

    def refusal_of_number(self, changes: int) -> str | None:
        """Return why a plan may make no more changes than it has made, None if it may."""
        if self.max_changes is None or changes < self.max_changes:
            return None
        return f"the plan has made {changes} changes, as many as --max-changes allows"


def is_own(container_id: str, root: Path = ROOT) -> bool:
    """Tell whether this process runs in a container: its cgroup is the container's, or the engine
    has mounted the container's files (/etc/hostname and others) here."""
    if cgroup.belongs_to("self", container_id, root):
        return True
    lines = read_text(f"{root}/proc/self/mountinfo").splitlines()
    mounted = (line.split()[3] for line in lines if line.count(" ") > 3)
    return any(f"/containers/{container_id}/" in source for source in mounted)
