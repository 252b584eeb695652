"""The configuration of a Docker container, from which another engine creates its like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dltools.engine.interface import Container, Move
from dltools.engine.limits.limit_fields import creation_fields
from dltools.labels import ORIGIN

_GRACE_S = 10.0
"""How long an engine waits for a container to stop, unless the container says otherwise."""

NO_RESTART = {"Name": "no"}


def move_of(container: Container, original: Mapping[str, Any], image: str) -> Move:
    """Return what another engine must know to run a container. `original` are the fields of limits
    that dl-apply has changed, as they were before; `image` is what the other engine calls the
    image."""
    config, found = container.native["Config"], _host_config(container)
    timeout = config.get("StopTimeout")
    return Move(
        _creation_body(container, original, image),
        found.get("RestartPolicy") or NO_RESTART,
        str(config.get("StopSignal") or "SIGTERM"),
        _GRACE_S if timeout is None else float(timeout),
    )


def _creation_body(container: Container, original: Mapping[str, Any], image: str) -> dict[str, Any]:
    """Return the body of the request that creates the same container on another engine."""
    config = {**container.native["Config"], "Image": image}
    if config.get("Hostname") == container.id[:12]:
        del config["Hostname"]
    config["Labels"] = {**container.labels, ORIGIN: container.origin}
    host_config = {**_host_config(container), **creation_fields(original)}
    own = [_as_mount(bind) for bind in host_config.get("Binds") or []]
    host_config["Mounts"] = [*(host_config.get("Mounts") or []), *own]
    host_config["Binds"] = None  # unlike a mount, the engine would make a folder that is missing
    body = {**config, "HostConfig": host_config}
    network = host_config.get("NetworkMode", "default")
    if is_own_network(network):
        networks = (container.native.get("NetworkSettings") or {}).get("Networks") or {}
        aliases = [
            name
            for name in (networks.get(network) or {}).get("Aliases") or []
            if name != container.id[:12]
        ]
        body["NetworkingConfig"] = {"EndpointsConfig": {network: {"Aliases": aliases}}}
    return body


def look_body(container: Container, image: str) -> dict[str, Any]:
    """Return the body of the request that creates a container with a task's volumes and no more."""
    return {
        "Image": image,
        "Cmd": ["true"],
        "Labels": {ORIGIN: container.origin},
        "HostConfig": {
            "NetworkMode": "none",
            "Mounts": _host_config(container).get("Mounts") or [],
        },
    }


def _host_config(container: Container) -> Mapping[str, Any]:
    return container.native.get("HostConfig") or {}


def is_own_network(mode: str) -> bool:
    """Tell whether a network mode names a network that a user has made."""
    return mode not in ("", "default", "bridge", "host", "none") and ":" not in mode


def _as_mount(bind: str) -> dict[str, Any]:
    """Return a bind (SOURCE:TARGET:OPTIONS) as a mount, which the engine refuses where its source
    is missing."""
    source, target, *rest = bind.split(":")
    options = rest[0].split(",") if rest else []
    mount: dict[str, Any] = {
        "Type": "bind" if source.startswith("/") else "volume",
        "Source": source,
        "Target": target,
        "ReadOnly": "ro" in options,
    }
    shared = [option for option in options if option.lstrip("r") in ("private", "shared", "slave")]
    if shared and mount["Type"] == "bind":
        mount["BindOptions"] = {"Propagation": shared[0]}
    if "nocopy" in options:
        mount["VolumeOptions"] = {"NoCopy": True}
    return mount
