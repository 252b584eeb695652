"""Moves between Docker engines: what the like of a container is created from, and each step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dltools.engine.docker.changes import Changes, path_of
from dltools.engine.docker.http import Transport, quoted
from dltools.engine.docker.swarm import SERVICE
from dltools.engine.interface import Container, Fields, GoneError
from dltools.engine.limits.limit_updates import creation_fields
from dltools.engine.parts import Delivers, Move, Moves
from dltools.labels import ORIGIN

_GRACE_S = 10.0
"""How long an engine waits for a container to stop, unless the container says otherwise."""

NO_RESTART = {"Name": "no"}

LIST = "/containers/json"
"""The path of the request for the containers of an engine."""


class DockerMoves(Moves, Delivers):
    """What one engine does in a move: it gives and takes containers, and shows their files."""

    def __init__(self, transport: Transport, changes: Changes, node_id: str = "") -> None:
        """`node_id`: that of the host in its Swarm."""
        self._transport = transport
        self._changes = changes
        self.node_id = node_id

    def describe_move(self, container: Container, original: Fields, image: str) -> Move:
        """Return what another engine must know to run a container. `original` are the limits that
        dl-apply has changed, as they were before; `image` is what the other engine calls the
        image."""
        config = container.native["Config"]
        timeout = config.get("StopTimeout")
        return Move(
            _creation_body(container, original, image),
            _host_config(container).get("RestartPolicy") or NO_RESTART,
            str(config.get("StopSignal") or "SIGTERM"),
            _GRACE_S if timeout is None else float(timeout),
        )

    def describe_look(self, container: Container, image: str) -> Fields:
        """Return what another engine must know to show the volumes of a container, and do no
        more."""
        mounts = _host_config(container).get("Mounts") or []
        return {
            "Image": image,
            "Cmd": ["true"],
            "Labels": {ORIGIN: container.origin},
            "HostConfig": {"NetworkMode": "none", "Mounts": mounts},
        }

    def create(self, name: str, body: Fields) -> str:
        """Create a container, which does not run yet, and return its id."""
        answer = self._transport.json("POST", "/containers/create", {"name": name}, dict(body))
        return str(answer["Id"])

    def start(self, id_: str) -> None:
        """Start a container, unless it runs."""
        self._transport.json("POST", f"{path_of(id_)}/start")

    def signal(self, id_: str, name: str) -> None:
        """Send a signal, such as SIGTERM, to a container's first process."""
        self._transport.json("POST", f"{path_of(id_)}/kill", {"signal": name})

    def remove(self, id_: str) -> None:
        """Remove a container that does not run."""
        self._transport.json("DELETE", path_of(id_))

    def set_restart(self, id_: str, policy: Fields | None) -> None:
        """Set when the engine starts a container again by itself; None: never."""
        restart = NO_RESTART if policy is None else policy
        self._changes.make(id_, "update", {"RestartPolicy": restart})

    def has_task_of(self, service_id: str) -> bool:
        """Tell whether a task of a Swarm service runs here."""
        filters = json.dumps({"label": [f"{SERVICE}={service_id}"]})
        return bool(self._transport.json("GET", LIST, {"filters": filters}))

    def image_id(self, name: str) -> str | None:
        """Return the id of an image, None where it is absent."""
        image = self._known(f"/images/{quoted(name)}/json")
        return image and str(image["Id"])

    def has_volume(self, name: str) -> bool:
        """Tell whether there is a volume of a name."""
        return self._known(f"/volumes/{quoted(name)}") is not None

    def has_network(self, name: str) -> bool:
        """Tell whether there is a network of a name."""
        return self._known(f"/networks/{quoted(name)}") is not None

    def _known(self, path: str) -> Any:
        try:
            return self._transport.json("GET", path)
        except GoneError:
            return None

    def archive(self, id_: str, path: str) -> Iterator[bytes]:
        """Return a file or folder of a container, running or not, as the chunks of a tar stream.

        Raises `GoneError` also where the container has no such path.
        """
        return self._transport.chunks(f"{path_of(id_)}/archive", {"path": path})


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
