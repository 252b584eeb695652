"""The steps that move a Swarm service of one task from node to node.

The service is scaled to nothing, and to one again when the source's engine has said that the task
does not run; a constraint then holds it on the target. One update of the constraint alone would
leave it to Swarm when the new task starts: a minute after the old one was asked to stop at the
latest, whether it runs or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dltools.apply.migrate.migration import (
    FailedError,
    Migration,
    Step,
    WaitError,
    engine_of,
    expect_checkpoint,
    expect_running,
    moves_of,
    not_shared,
)
from dltools.engine.interface import Engine, GoneError, RefusedError
from dltools.engine.parts import Moves, needed, part
from dltools.engine.services import Service, Services, Task
from dltools.errors import UnavailableError
from dltools.labels import ORIGIN, PLACED

START_S = 60.0
"""How long Swarm may take to start a task, or to stop one beyond its grace period (ours)."""

PENDING_S = 10.0
"""How long Swarm may say that no node suits a task, before the move is rolled back (ours)."""

_SETTLE_S = 1.0
"""How long a task must run to count as started."""

_NEVER = datetime.min.replace(tzinfo=UTC)
_POLL_S = 0.1
_LOOKS = 20
_LOOK_S = 0.3
"""How often, and how far apart, the checkpoints of both hosts are compared while one changes."""


@dataclass(frozen=True, slots=True)
class ServiceSteps:
    """Takes the steps, by methods of their names; as `Mover` does, it raises `FailedError` to have
    the move rolled back, and `WaitError` where the next run must go on."""

    engines: Mapping[str, Engine]
    sleep: Callable[[float], None]
    clock: Callable[[], float]

    def create(self, migration: Migration) -> Migration:
        """See that the target has the job's checkpoint, through a container that never runs."""
        source = engine_of(self.engines, migration.source)
        target = engine_of(self.engines, migration.target)
        expect_running(source, migration)
        if migration.checkpoint:
            self._remove_look(migration)
            try:
                look = needed(target, Moves).create(_look_name(migration), migration.body)
            except (GoneError, RefusedError) as error:
                raise FailedError(f"{migration.target} cannot create it: {error}") from error
            self._compare(migration, source, target, look)
            self._remove_look(migration)
        return replace(migration, step=Step.STOP)

    def _compare(self, migration: Migration, source: Engine, target: Engine, look: str) -> None:
        """Compare the checkpoints of both hosts, of which the job may write one meanwhile."""
        path = migration.checkpoint
        for _ in range(_LOOKS):
            before = expect_checkpoint(source, migration.container_id, path)
            file_header = expect_checkpoint(target, look, path)
            after = expect_checkpoint(source, migration.container_id, path)
            if file_header in (before, after):
                return
            if before == after:
                break
            self.sleep(_LOOK_S)
        raise not_shared(migration.source, migration.target)

    def stop(self, migration: Migration) -> Migration:
        """Scale the service to nothing, and see its task end."""
        cluster = _cluster(self.engines, migration)
        try:
            cluster.change(migration.service, replicas=0, constraints=migration.new_constraints)
        except GoneError as error:
            raise FailedError("its service was removed while dl-apply was stopping it") from error
        self._await_end(migration, cluster, migration.source)
        return replace(migration, step=Step.START)

    def start(self, migration: Migration) -> Migration:
        """Scale the service to one task, and see that run on the target."""
        cluster = _cluster(self.engines, migration)
        try:
            cluster.change(migration.service, replicas=1, constraints=migration.new_constraints)
            new_id = self._await_start(migration, cluster, migration.target)
        except GoneError as error:
            raise FailedError(f"its service is gone: {error}") from error
        return replace(migration, new_id=new_id, step=Step.REMOVE)

    def remove(self, migration: Migration) -> Migration:
        """Note on the service that the constraint is dl-apply's."""
        cluster = _cluster(self.engines, migration)
        with suppress(GoneError):
            cluster.change(migration.service, labels={PLACED: migration.constraint})
        return replace(migration, step=Step.DONE)

    def clear(self, migration: Migration) -> Migration:
        """Undo what was done on the target."""
        self._remove_look(migration)
        if migration.failed_at is not Step.START:
            return replace(migration, step=Step.UNDONE)
        cluster = _cluster(self.engines, migration)
        with suppress(GoneError):
            cluster.change(migration.service, replicas=0)
            self._await_end(migration, cluster, migration.target)
        return replace(migration, step=Step.RESUME)

    def resume(self, migration: Migration) -> Migration:
        """Have the task run on the source again, then take the constraints back; where the source
        is gone, Swarm chooses the node."""
        cluster = _cluster(self.engines, migration)
        undone = replace(migration, step=Step.UNDONE)
        try:
            if cluster.service(migration.service).replicas == 0:
                self._await_end(migration, cluster, migration.source)
            on_source = f"node.id=={self._node_id(migration.source)}"
            cluster.change(
                migration.service,
                replicas=1,
                constraints=(*_without_nodes(migration.constraints), on_source),
            )
            with suppress(FailedError):
                self._await_start(migration, cluster, migration.source)
            cluster.change(migration.service, replicas=1, constraints=migration.constraints)
            cluster.change(migration.service, labels={PLACED: migration.earlier or None})
        except GoneError:
            why = f"{migration.why}; somebody has removed its service"
            return replace(undone, why=why)
        return undone

    def _await_end(self, migration: Migration, cluster: Services, host: str) -> None:
        """Wait until the service runs nowhere: its manager and the host's own engine say so."""
        moves = moves_of(self.engines, host)
        until = self.clock() + migration.grace_s + START_S
        while self.clock() < until:
            is_live = any(task.is_live for task in cluster.tasks(migration.service))
            if not is_live and not moves.has_task_of(migration.service):
                return
            self.sleep(_POLL_S)
        raise WaitError(f"{migration.container_name} does not stop on {host}")

    def _await_start(self, migration: Migration, cluster: Services, host: str) -> str:
        """Return the id of the service's new container once it runs, or has ended well."""
        node, begun = self._node_id(host), self.clock()
        runs_since: float | None = None
        while True:
            tasks = cluster.tasks(migration.service)
            own = _since_update(cluster.service(migration.service), tasks)
            running = next(
                (task for task in tasks if task.node_id == node and task.state == "running"), None
            )
            if running is not None:
                runs_since = self.clock() if runs_since is None else runs_since
                if self.clock() - runs_since >= _SETTLE_S:
                    return running.container_id
            elif ended := next((task for task in own if task.state == "complete"), None):
                return ended.container_id
            elif why := _obstacle(own, self.clock() - begun):
                raise FailedError(f"it does not run on {host}: {why}")
            self.sleep(_POLL_S)

    def _remove_look(self, migration: Migration) -> None:
        """Remove the container through which the target was looked at."""
        target = engine_of(self.engines, migration.target)
        with suppress(GoneError):
            look = target.inspect(_look_name(migration))
            if look.labels.get(ORIGIN) == migration.origin:
                needed(target, Moves).remove(look.id)

    def _node_id(self, host: str) -> str:
        return moves_of(self.engines, host).node_id


def _since_update(service: Service, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that were made since a service was changed, the newest first."""
    newer = [
        task
        for task in tasks
        if task.created and service.updated and task.created >= service.updated
    ]
    return sorted(newer, key=lambda task: task.created or _NEVER, reverse=True)


def _obstacle(tasks: Sequence[Task], waited_s: float) -> str:
    """Return why a new task will not run, "" if it still may."""
    for task in tasks:
        if task.has_failed:
            return f"{task.state}: {task.error or 'no reason is given'}"
    error = next((task.error for task in tasks if task.error), "")
    if waited_s >= (PENDING_S if error else START_S):
        return f"not within {waited_s:.0f} s" + (f": {error}" if error else "")
    return ""


def manager(engines: Mapping[str, Engine], service_id: str) -> Services | None:
    """Return a Swarm that knows a service, None if no engine manages one.

    Raises as the engines do.
    """
    clusters = [
        services for engine in engines.values() if (services := part(engine, Services)) is not None
    ]
    for cluster in clusters[:-1]:
        with suppress(GoneError):
            cluster.service(service_id)
            return cluster
    return clusters[-1] if clusters else None


def _cluster(engines: Mapping[str, Engine], migration: Migration) -> Services:
    """Return the Swarm of a service that moves. Raises `WaitError` where no engine manages one."""
    services = manager(engines, migration.service)
    if services is None:
        raise WaitError("no host of this run manages its Swarm")
    return services


def free(engines: Mapping[str, Engine], migration: Migration) -> None:
    """Take back the constraint of a service that has moved. Swarm leaves its task where it is."""
    cluster = _cluster(engines, migration)
    with suppress(GoneError):
        service = cluster.service(migration.service)
        kept = [
            constraint for constraint in service.constraints if constraint != migration.constraint
        ]
        cluster.change(migration.service, constraints=kept, labels={PLACED: None})


def is_free(engines: Mapping[str, Engine], migration: Migration) -> bool:
    """Tell whether a service that has moved is gone, or the constraint of that move is."""
    try:
        service = _cluster(engines, migration).service(migration.service)
    except GoneError:
        return True
    except (WaitError, RefusedError, UnavailableError):
        return False
    return migration.constraint not in service.constraints


def _look_name(migration: Migration) -> str:
    return f"dltools-look-{migration.container_id[:12]}"


def _without_nodes(constraints: Sequence[str]) -> list[str]:
    """Return constraints without those that name a node."""
    return [
        constraint
        for constraint in constraints
        if constraint.partition("==")[0].strip() not in ("node.id", "node.hostname")
    ]
