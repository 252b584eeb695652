"""Why a container, or the Swarm service that it is a task of, cannot be moved to another host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from dltools.engine.interface import Container, Engine
from dltools.engine.parts import Moves, needed
from dltools.engine.services import Service, Services
from dltools.labels import CHECKPOINT, PLACED, PROTECT, is_true


def refusals(container: Container, target: Engine, *, force: bool) -> Iterator[str]:
    """Yield why a container cannot be moved. With `force` a job without a checkpoint is moved, too,
    and begins anew.

    Raises as the engine does.
    """
    labels = container.labels
    if is_true(labels.get(PROTECT)):
        yield f"protected by its label {PROTECT}"
    if container.state != "running":
        yield f"the container is {container.state}"
    yield from container.refuses.move
    if not force:
        yield from _checkpoint(container)
    networks = container.network.names
    if len(networks) > 1 and not container.service.id:
        yield f"it is on {len(networks)} networks; one is supported"
    if container.has_gpu and not target.has_gpu:
        yield f"it has a GPU, and {target.host} has none"
    yield from _missing(container, target, "" if container.service.id else container.network.needed)


def _checkpoint(container: Container) -> Iterator[str]:
    path = checkpoint_path(container)
    if not path:
        yield (
            f"it has no label {CHECKPOINT}, and would start from scratch on the other host; "
            "--force moves it anyway"
        )
    elif not any(PurePosixPath(path).is_relative_to(m.destination) for m in container.mounts):
        yield f"its checkpoint {path} is not on a volume that another host can share"


def _missing(container: Container, target: Engine, network: str) -> Iterator[str]:
    """Yield what the target lacks."""
    moves, image = needed(target, Moves), container.image_id
    if moves.image_id(image) is None:
        other = moves.image_id(container.image)
        missing = "is absent" if other is None else f"is another one ({other[7:19]})"
        yield f"its image {container.image} ({image[7:19]}) {missing} on {target.host}"
    for mount in container.mounts:
        if not mount.volume:
            continue
        if not mount.is_named:
            yield f"its volume at {mount.destination} has no name: what is in it would stay behind"
        elif not moves.has_volume(mount.volume):
            yield f"its volume {mount.volume} is missing on {target.host}"
    if network and not moves.has_network(network):
        yield f"its network {network} is missing on {target.host}"


def checkpoint_path(container: Container) -> str:
    """Return the path of a job's checkpoint, "" where it names none."""
    return container.labels.get(CHECKPOINT, "").strip()


def service_refusals(
    container: Container, service: Service, cluster: Services, target: Engine
) -> Iterator[str]:
    """Yield why the service of a container cannot be moved. What keeps any container from being
    moved is not looked at.

    Raises as the engine does.
    """
    if is_true(service.labels.get(PROTECT)):
        yield f"its service is protected by its label {PROTECT}"
    if service.replicas is None:
        yield f"its service is {service.mode}; a replicated one of one task can be moved"
    if service.replicas != 1:
        yield f"its service has {service.replicas} tasks; one of one task can be moved"
    node_id = needed(target, Moves).node_id
    if not node_id:
        yield f"{target.host} is in no Swarm"
    node = cluster.node(node_id)
    own = service.labels.get(PLACED)
    for constraint in service.constraints:
        if constraint != own and node.is_forbidden_by(constraint):
            yield f"the constraint {constraint} of its service forbids {target.host}"
    if (node.state, node.availability) != ("ready", "active"):
        yield f"its cluster says of {target.host}: {node.state}, {node.availability}"
    live = [task for task in cluster.tasks(service.id) if task.is_live]
    if [task.container_id for task in live] != [container.id]:
        yield "its service is being updated"
