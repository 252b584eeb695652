"""Why a Swarm service cannot be moved to another node."""

from __future__ import annotations

from collections.abc import Iterator

from dltools.apply.migrate.record import PLACED
from dltools.engine.interface import Container, Engine, Service, ServiceManager
from dltools.labels import PROTECT, is_true


def service_refusal(
    container: Container, service: Service, swarm: ServiceManager, target: Engine
) -> str | None:
    """Return why the service of a container cannot be moved, None if it can. What keeps any
    container from being moved is not looked at.

    Raises as the engine does.
    """
    return next(_refusals(container, service, swarm, target), None)


def _refusals(
    container: Container, service: Service, swarm: ServiceManager, target: Engine
) -> Iterator[str]:
    if is_true(service.labels.get(PROTECT)):
        yield f"its service is protected by its label {PROTECT}"
    if service.replicas is None:
        yield f"its service is {service.mode}; a replicated one of one task can be moved"
    if service.replicas != 1:
        yield f"its service has {service.replicas} tasks; one of one task can be moved"
    if not target.node_id:
        yield f"{target.host} is in no Swarm"
    node = swarm.node(target.node_id)
    own = service.labels.get(PLACED)
    for constraint in service.constraints:
        if constraint != own and node.is_forbidden_by(constraint):
            yield f"the constraint {constraint} of its service forbids {target.host}"
    if (node.state, node.availability) != ("ready", "active"):
        yield f"Swarm says of {target.host}: {node.state}, {node.availability}"
    live = [one for one in swarm.tasks(service.id) if one.is_live]
    if [one.container_id for one in live] != [container.id]:
        yield "its service is being updated"
