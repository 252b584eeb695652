"""Why a container, or the Swarm service that it is a task of, cannot be moved to another host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from dltools.engine import gpu
from dltools.engine.containers import Container, Engine
from dltools.engine.services import PLACED, SERVICE, Service, Swarm, contradicts
from dltools.labels import CHECKPOINT, PROTECT, is_true


def refusal(container: Container, target: Engine, *, force: bool) -> str | None:
    """Return why a container cannot be moved, None if it can. With `force` a job without a
    checkpoint is moved, too, and begins anew.

    Raises as the engine does.
    """
    return next(_refusals(container, target, force), None)


def _refusals(container: Container, target: Engine, force: bool) -> Iterator[str]:
    config, labels = container.host_config, container.labels
    if is_true(labels.get(PROTECT)):
        yield f"protected by its label {PROTECT}"
    if container.state != "running":
        yield f"the container is {container.state}"
    if config.get("AutoRemove"):
        yield "it was started with --rm: it would be gone before its successor runs"
    if not force:
        yield from _checkpoint(container)
    mode = config.get("NetworkMode") or "default"
    if mode.startswith("container:") or config.get("VolumesFrom") or config.get("Links"):
        yield "it shares a network, volumes or links with another container"
    networks = container.raw.get("NetworkSettings", {}).get("Networks") or {}
    if len(networks) > 1 and SERVICE not in labels:
        yield f"it is on {len(networks)} networks; one is supported"
    if gpu.access(container) is not gpu.Access.NONE and not target.has_gpu:
        yield f"it has a GPU, and {target.host} has none"
    yield from _missing(container, target, "" if SERVICE in labels else mode)


def _checkpoint(container: Container) -> Iterator[str]:
    path = checkpoint_path(container)
    if not path:
        yield (
            f"it has no label {CHECKPOINT}, and would begin anew on the other host; "
            "--force moves it all the same"
        )
    elif mount_of(container, path) is None:
        yield f"its checkpoint {path} is not on a volume that another host can have"


def _missing(container: Container, target: Engine, network: str) -> Iterator[str]:
    """Yield what the target lacks."""
    image = container.raw.get("Image") or ""
    if target.image_id(image) is None:
        other = target.image_id(container.image)
        missing = "is absent" if other is None else f"is another one ({other[7:19]})"
        yield f"its image {container.image} ({image[7:19]}) {missing} on {target.host}"
    for mount in container.raw.get("Mounts") or []:
        if mount.get("Type") != "volume":
            continue
        if mount["Destination"] not in named_targets(container):
            yield (
                f"its volume at {mount['Destination']} has no name: what is in it would stay behind"
            )
        elif not target.has_volume(mount["Name"]):
            yield f"its volume {mount['Name']} is missing on {target.host}"
    if is_own_network(network) and not target.has_network(network):
        yield f"its network {network} is missing on {target.host}"


def is_own_network(mode: str) -> bool:
    """Tell whether a network mode names a network that a user has made."""
    return mode not in ("", "default", "bridge", "host", "none") and ":" not in mode


def checkpoint_path(container: Container) -> str:
    """Return the path of a job's checkpoint, "" where it names none."""
    return container.labels.get(CHECKPOINT, "").strip()


def mount_of(container: Container, path: str) -> dict[str, Any] | None:
    """Return the mount that a path inside a container is on, None if it is on none."""
    inside = PurePosixPath(path)
    mounts = [
        dict(mount)
        for mount in container.raw.get("Mounts") or []
        if mount.get("Type") in ("bind", "volume") and inside.is_relative_to(mount["Destination"])
    ]
    return max(mounts, key=lambda mount: len(mount["Destination"]), default=None)


def named_targets(container: Container) -> set[str]:
    """Return where volumes are mounted that the container's configuration names."""
    config = container.host_config
    mounts = {
        mount.get("Target", "") for mount in config.get("Mounts") or [] if mount.get("Source")
    }
    return mounts | {bind.split(":")[1] for bind in config.get("Binds") or []}


def service_refusal(
    container: Container, service: Service, swarm: Swarm, target: Engine
) -> str | None:
    """Return why the service of a container cannot be moved, None if it can. What keeps any
    container from being moved is not looked at.

    Raises as the engine does.
    """
    return next(_service_refusals(container, service, swarm, target), None)


def _service_refusals(
    container: Container, service: Service, swarm: Swarm, target: Engine
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
        if constraint != own and contradicts(constraint, node):
            yield f"the constraint {constraint} of its service forbids {target.host}"
    state = (node.get("Status") or {}).get("State")
    availability = (node.get("Spec") or {}).get("Availability")
    if (state, availability) != ("ready", "active"):
        yield f"Swarm says of {target.host}: {state}, {availability}"
    live = [one for one in swarm.tasks(service.id) if one.is_live]
    if [one.container_id for one in live] != [container.id]:
        yield "its service is being updated"
