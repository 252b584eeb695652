"""Noticing that something else has changed the settings that this run has made."""

from __future__ import annotations

from dataclasses import replace

from dltools.engine.interface import LocatedContainer
from dltools.plan.realisation.settings import Settings, differs
from dltools.plan.records import Result, Status


class Reverts:
    """Remembers the settings that a run has made, by container."""

    def __init__(self) -> None:
        self._made: dict[str, Settings] = {}

    def made(self, container_id: str) -> Settings:
        """Return the settings that the run has made in a container, {} if none."""
        return self._made.get(container_id, {})

    def forget(self, container_id: str) -> None:
        """Forget a container that is gone."""
        self._made.pop(container_id, None)

    def noted(self, result: Result, located: LocatedContainer) -> Result:
        """Return the result of an update; one that has succeeded says what else had been changed.

        Settings that are as wanted again count as made, too.
        """
        if result.status not in (Status.APPLIED, Status.UNCHANGED):
            return result
        made = self._made.setdefault(located.container.id, {})
        changed = [
            name
            for name in result.before
            if name in made and differs({name: made[name]}, result.before, located.usable_cpus)
        ]
        made |= result.after
        if not changed or result.error:
            return result
        is_task = located.container.is_task
        who = "Swarm, or somebody," if is_task else "somebody"
        reason = f"{who} has changed {' and '.join(changed)} since dl-apply had set it"
        return replace(result, error=reason)
