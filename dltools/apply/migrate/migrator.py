"""Migrations that plans order, and those that earlier runs have left half-way.

The actuator calls it; `move_steps` takes the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dltools.actions.plans import Action, OnResult, Result, Status
from dltools.actions.settings import Settings
from dltools.apply.migrate.migration import Migration, Step, WaitError
from dltools.apply.migrate.movable import checkpoint_path, refusals, service_refusals
from dltools.apply.migrate.move_steps import Mover, rolled_back
from dltools.apply.migrate.service_steps import free, is_free, manager
from dltools.engine.interface import Container, Engine, RefusedError
from dltools.engine.links import has_container
from dltools.engine.parts import Moves, needed, part
from dltools.errors import UnavailableError
from dltools.labels import PLACED
from dltools.notation.times import format_time


class Migrator:
    """Moves jobs between the hosts of one run."""

    def __init__(self, mover: Mover, *, force: bool = False, dry_run: bool = False) -> None:
        """With `force` jobs without checkpoints are moved, too."""
        self._mover = mover
        self._force = force
        self._dry_run = dry_run

    def migrate(
        self, action: Action, container: Container, result: Result, original: Mapping[str, Any]
    ) -> Result:
        """Move a container for an action. `result` names both; `original` are the engine's fields
        that dl-apply has changed, as they were before."""
        host = action.to or ""
        target = self._mover.engines.get(host)
        if target is None:
            return replace(result, error=f"host {action.to} is not among those that --host names")
        if action.to == action.host:
            return replace(result, status=Status.UNCHANGED, after={"host": action.host})
        result = replace(result, before={"host": action.host}, after={"host": action.host})
        moves = part(target, Moves)
        if moves is None or not target.capabilities.creates:
            return replace(result, error=f"the engine of host {host} accepts no containers")
        if reason := next(refusals(container, target, force=self._force), None):
            return replace(result, error=reason)
        migration = self._begun(action, container, moves, original)
        if container.service.id:
            migration, reason = self._of_service(migration, container, target)
            if reason:
                return replace(result, error=reason)
        if self._dry_run:
            return replace(result, status=Status.PLANNED, after={"host": host})
        self._mover.files.write(migration)
        return self._carry_out(migration)

    def _begun(
        self, action: Action, container: Container, moves: Moves, original: Mapping[str, Any]
    ) -> Migration:
        """Return the record of a migration that has not begun."""
        move = moves.describe_move(container, original, _image(container, moves))
        return Migration(
            action_id=action.id,
            source=action.host,
            target=action.to or "",
            container_id=container.id,
            container_name=container.name,
            body=move.body,
            restart_policy=move.restart,
            origin=container.origin,
            checkpoint=checkpoint_path(container) if not self._force else "",
            grace_s=move.grace_s,
            stop_signal=move.stop_signal,
            since=format_time(datetime.now(UTC)),
        )

    def _of_service(
        self, migration: Migration, container: Container, target: Engine
    ) -> tuple[Migration, str | None]:
        """Return the record for the service of a container, and why it cannot be moved."""
        service_id = container.service.id
        cluster = manager(self._mover.engines, service_id)
        if cluster is None:
            why = "it is a task of a Swarm service, and no engine named manages its Swarm"
            return migration, why
        service = cluster.service(service_id)
        if reason := next(service_refusals(container, service, cluster, target), None):
            return migration, reason
        moves = needed(target, Moves)
        return replace(
            migration,
            body=moves.describe_look(container, _image(container, moves)),
            service=service_id,
            constraints=service.constraints,
            earlier=service.labels.get(PLACED, ""),
            constraint=f"node.id=={moves.node_id}",
        ), None

    def go_on(self, on_result: OnResult) -> list[Result]:
        """Finish what earlier runs have begun, or roll it back where the old container has not been
        touched; forget what is over."""
        results = []
        for migration in self._mover.files.all():
            if migration.is_open:
                if migration.step is Step.CREATE:
                    migration = rolled_back(migration, "an earlier dl-apply was ended")
                results.append(self._carry_out(migration))
                on_result(results[-1])
            elif self._is_over(migration):
                self._mover.files.remove(migration)
        return results

    def undo(self, on_result: OnResult) -> list[Result]:
        """Roll back what can be rolled back, and say what cannot."""
        results = []
        for migration in self._mover.files.all():
            if not migration.is_open and self._is_over(migration):
                continue
            result = self._undone(migration)
            results.append(result)
            on_result(result)
        return results

    def _undone(self, migration: Migration) -> Result:
        skipped = _result(migration, Status.SKIPPED)
        has_moved = migration.step in (Step.DONE, Step.REMOVE)
        if migration.service and has_moved:
            return self._freed(migration)
        if has_moved:
            reason = (
                f"it has been moved from {migration.source} to {migration.target}, and its old "
                "container is removed: only a plan can move it back"
            )
            return replace(skipped, error=reason)
        if self._dry_run:
            return replace(skipped, status=Status.PLANNED, after={"host": migration.source})
        if migration.step in (Step.CREATE, Step.STOP, Step.START):
            migration = rolled_back(migration, "undone")
            self._mover.files.write(migration)
        result = self._carry_out(migration)
        if result.error and result.error.endswith(": undone"):
            return replace(result, status=Status.APPLIED, error=None)
        return result

    def _freed(self, migration: Migration) -> Result:
        """Take back the constraint of a service that has moved; it stays where it is."""
        here: Settings = {"host": migration.target}
        result = replace(_result(migration, Status.PLANNED), before=here, after=here)
        if not self._dry_run:
            try:
                free(self._mover.engines, migration)
            except (WaitError, RefusedError, UnavailableError) as error:
                return replace(result, status=Status.FAILED, error=str(error))
            self._mover.files.remove(migration)
            result = replace(result, status=Status.APPLIED)
        reason = (
            f"its constraint to {migration.target} is removed; it stays there until Swarm "
            "restarts it, and only a plan can move it back"
        )
        return replace(result, error=reason)

    def _carry_out(self, migration: Migration) -> Result:
        try:
            migration = self._mover.carry_out(migration)
        except (WaitError, UnavailableError) as error:
            left = self._mover.files.find(migration.container_id) or migration
            reason = f"{error}; {left.whereabouts}; the next run of dl-apply continues"
            return replace(_result(left, Status.FAILED), error=reason)
        if migration.step is Step.DONE:
            after: Settings = {"host": migration.target, "container": migration.new_id}
            return replace(_result(migration, Status.APPLIED), after=after)
        self._mover.files.remove(migration)
        reason = f"not moved, it stays on {migration.source}: {migration.why}"
        return replace(_result(migration, Status.FAILED), error=reason)

    def _is_over(self, migration: Migration) -> bool:
        """Tell whether a move is over: its new container is gone, or its constraint is."""
        if migration.service:
            return is_free(self._mover.engines, migration)
        engine = self._mover.engines.get(migration.target)
        if engine is None:
            return False
        try:
            return not has_container(engine, migration.new_id)
        except (RefusedError, UnavailableError):
            return False


def _image(container: Container, target: Moves) -> str:
    """Return the name of a container's image if it stands for the same one on the target, else the
    image's id."""
    own = container.image_id
    return container.image if target.image_id(container.image) == own else own


def _result(migration: Migration, status: Status) -> Result:
    id_, host = migration.container_id, Settings(host=migration.source)
    return Result(migration.action_id, status, id_, migration.container_name, host, host)
