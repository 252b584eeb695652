"""What Docker answers of containers, events and counters, as values of the interface.

`DockerEngine` calls these. The API's counters have no pressure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dltools.engine.cgroup_files import CpuUsage, MemoryUsage, Transfer, Usage
from dltools.engine.docker.moves import is_own_network
from dltools.engine.docker.swarm import SERVICE
from dltools.engine.gpu_access import GpuAccess, asks_for_gpu, names_gpu
from dltools.engine.interface import (
    Container,
    Ending,
    Event,
    Listed,
    Mount,
    Network,
    OfService,
    Program,
    Refusals,
)
from dltools.engine.limits.limit_updates import FIELDS, recorded_limits
from dltools.engine.pauses import HEALTH_CHECK, may_pause
from dltools.notation.json_values import table_in
from dltools.notation.times import time_or_none

_SWARM_TASK = "com.docker.swarm.task.id"
"""The label of a container that is a task of a Swarm service."""

_SERVICE_NAME = "com.docker.swarm.service.name"

_INGRESS = "ingress"
"""The network of services that publish a port on all nodes of a Swarm."""

_USUAL_NETWORKS = ("bridge", "host", "none", _INGRESS)
"""The networks that every engine has, or every Swarm."""

_ACTIONS = {"die": "exit", "destroy": "remove", "health_status: unhealthy": "unhealthy"}
"""Docker's names of events that have other names here."""

_HARMLESS = ("exec", "health_status", "top")
"""Events whose names begin so change nothing."""

_HANDS = {
    "kill": "signal",
    "attach": "attach",
    "exec_create": "enter",
    "exec_start": "enter",
    "exec": "enter",
    "exec_die": "leave",
    "exec_died": "leave",
}
"""Docker's and Podman's names of what people do to a container."""


def container_of(raw: Mapping[str, Any]) -> Container:
    """Return the container of an inspection."""
    state, config = raw["State"], raw["Config"]
    host_config: Mapping[str, Any] = raw.get("HostConfig") or {}
    labels: Mapping[str, str] = config.get("Labels") or {}
    name, is_task = raw["Name"].removeprefix("/"), _SWARM_TASK in labels
    service_id = labels.get(SERVICE) or ""
    service = labels.get(_SERVICE_NAME, "") if is_task else ""
    slot = ".".join([service_id, *name.split(".")[-2:-1]]) if service_id else ""
    return Container(
        id=raw["Id"],
        name=name,
        image=config.get("Image") or raw.get("Image") or "",
        state=state.get("Status") or "",
        pid=state.get("Pid") or 0,
        started=engine_time(state.get("StartedAt")),
        labels=labels,
        image_id=str(raw.get("Image") or ""),
        started_text=str(state.get("StartedAt") or ""),
        ended=Ending(
            engine_time(state.get("FinishedAt")),
            state.get("ExitCode"),
            str(state.get("Error") or ""),
        ),
        program=Program(
            [str(raw.get("Path") or ""), *map(str, raw.get("Args") or ())],
            "\0".join(map(str, config.get("Env") or ())).encode(errors="replace"),
            str(config.get("Hostname") or ""),
            str(config.get("User") or ""),
        ),
        network=network_of(raw, has_service=bool(service)),
        mounts=_mounts(raw),
        service=OfService(service_id, service, slot, is_task),
        refuses=Refusals(
            tuple(_ties(host_config)),
            HEALTH_CHECK if _has_health_check(raw) and not may_pause(labels) else "",
        ),
        **access_by_request(raw)._asdict(),
        recorded=recorded_limits(host_config),
        limit_fields={name: host_config.get(name) or 0 for name in FIELDS},
        native=raw,
    )


def _has_health_check(raw: Mapping[str, Any]) -> bool:
    """Tell whether the engine looks again and again whether an inspected container is well. Podman
    shows the state of the check, and not always the check."""
    test = table_in(raw, "Config", "Healthcheck").get("Test")
    status = str(table_in(raw, "State", "Health").get("Status") or "none").lower()
    return status != "none" or (isinstance(test, list) and bool(test) and test[0] != "NONE")


def access_by_request(raw: Mapping[str, Any]) -> GpuAccess:
    """Return how an inspected container got its GPU, as far as the inspection tells."""
    config = raw.get("HostConfig") or {}
    requests: list[Mapping[str, Any]] = config.get("DeviceRequests") or []
    environ = (raw.get("Config") or {}).get("Env") or []
    is_by_runtime = config.get("Runtime") == "nvidia" and asks_for_gpu(environ)
    is_by_hook = is_by_runtime or any(
        _is_gpu(request) and request.get("Driver") != "cdi" for request in requests
    )
    has_device = names_gpu(config.get("Devices"), "PathOnHost")
    return GpuAccess(is_by_hook or bool(requests) or has_device, is_by_hook)


def _is_gpu(request: Mapping[str, Any]) -> bool:
    groups = request.get("Capabilities")
    is_named = isinstance(groups, list) and any("gpu" in group for group in groups if group)
    return is_named or request.get("Driver") in ("nvidia", "cdi")


def network_of(raw: Mapping[str, Any], *, has_service: bool = False) -> Network:
    """Return how an inspected container is reached."""
    host_config = raw.get("HostConfig") or {}
    settings = raw.get("NetworkSettings") or {}
    networks: Mapping[str, Any] = settings.get("Networks") or {}
    shown: Mapping[str, Any] = settings.get("Ports") or {}
    mode = str(host_config.get("NetworkMode") or "")
    names = tuple(map(str, networks))
    addresses = tuple(
        str(network["IPAddress"])
        for network in networks.values()
        if network and network.get("IPAddress")
    )
    exposed = (raw.get("Config") or {}).get("ExposedPorts") or {}
    places = [*(host_config.get("PortBindings") or {}), *(key for key, at in shown.items() if at)]
    numbers = {key.partition("/")[0] for key in places}
    return Network(
        names=names,
        own_names=tuple(sorted(name for name in names if name not in _USUAL_NETWORKS)),
        is_shared=mode == "host" or mode.startswith("container:"),
        addresses=("127.0.0.1",) if mode == "host" else addresses,
        exposed=frozenset(_port_numbers(exposed)),
        published={
            number: _host_end(bound[0])
            for port, bound in shown.items()
            if bound and bound[0].get("HostPort")
            for number in _port_numbers([port])
        },
        ports=tuple(
            sorted(int(number) for number in numbers if number.isascii() and number.isdigit())
        ),
        serves_nodes=has_service and _INGRESS in names,
        needed=mode if is_own_network(mode) else "",
    )


def _port_numbers(ports: Iterable[str]) -> Iterator[int]:
    """Yield the numbers of TCP ports such as 8000/tcp."""
    for port in ports:
        number, _, protocol = port.partition("/")
        if protocol == "tcp" and number.isascii() and number.isdigit():
            yield int(number)


def _host_end(bound: Mapping[str, str]) -> str:
    """Return the address of a published port: 127.0.0.1 only if it is bound to all addresses, since
    another container's may be bound there."""
    host = bound.get("HostIp") or "0.0.0.0"
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"[{host}]:{bound['HostPort']}" if ":" in host else f"{host}:{bound['HostPort']}"


def _mounts(raw: Mapping[str, Any]) -> tuple[Mount, ...]:
    """Return the binds and volumes of a container."""
    config = raw.get("HostConfig") or {}
    named = {mount.get("Target", "") for mount in config.get("Mounts") or [] if mount.get("Source")}
    named |= {bind.partition(":")[2].partition(":")[0] for bind in config.get("Binds") or []}
    return tuple(
        Mount(
            mount["Destination"],
            mount.get("Name", "") if mount["Type"] == "volume" else "",
            mount["Destination"] in named,
        )
        for mount in raw.get("Mounts") or []
        if mount.get("Type") in ("bind", "volume")
    )


def _ties(host_config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what ties a container to its host."""
    if host_config.get("AutoRemove"):
        yield "it was started with --rm: it would be gone before its successor runs"
    mode = host_config.get("NetworkMode") or ""
    if mode.startswith("container:") or host_config.get("VolumesFrom") or host_config.get("Links"):
        yield "it shares a network, volumes or links with another container"


def listed_of(entry: Mapping[str, Any]) -> Listed:
    """Return an entry of the list of containers."""
    names = entry.get("Names")
    name = str(names[0]).lstrip("/") if isinstance(names, list) and names else ""
    return Listed(entry["Id"], name, str(entry.get("State") or ""))


def event_of(raw: Mapping[str, Any]) -> Event:
    """Return an event of a container."""
    actor = raw.get("Actor")
    actor = actor if isinstance(actor, Mapping) else {}
    attributes: Mapping[str, str] = actor.get("Attributes") or {}
    nanos, action = raw.get("timeNano"), str(raw.get("Action") or "")
    code = str(attributes.get("exitCode", ""))
    return Event(
        str(actor.get("ID") or ""),
        attributes.get("name", ""),
        _ACTIONS.get(action, "" if action.startswith(_HARMLESS) else action),
        datetime.fromtimestamp(nanos / 1e9, UTC)
        if isinstance(nanos, int)
        else engine_time(str(raw.get("time"))) or datetime.now(UTC),
        nanos if isinstance(nanos, int) else None,
        int(code) if code.lstrip("-").isdigit() else None,
        attributes,
        _HANDS.get(action.partition(": ")[0], ""),
        attributes.get("execID", ""),
    )


def engine_time(text: str | None) -> datetime | None:
    """Return the time of the engine's text (RFC 3339), None if it is empty or in the year 1."""
    return None if text and text.startswith("0001-") else time_or_none(text)


def usage_of(stats: Mapping[str, Any]) -> Usage:
    """Return the counters in an answer of the API's `stats`; what it lacks is None."""
    cpu, throttled = table_in(stats, "cpu_stats"), table_in(stats, "cpu_stats", "throttling_data")
    return Usage(
        cpu=CpuUsage(
            seconds=_seconds(table_in(cpu, "cpu_usage").get("total_usage")),
            throttled_seconds=_seconds(throttled.get("throttled_time")),
        ),
        memory=_memory(table_in(stats, "memory_stats")),
        io=_transfer(table_in(stats, "blkio_stats").get("io_service_bytes_recursive")),
        threads=_count(table_in(stats, "pids_stats").get("current")),
        network=_network(stats),
    )


def _network(stats: Mapping[str, Any]) -> Transfer:
    """Return the bytes received and sent on all interfaces."""
    networks = stats.get("networks")
    if not isinstance(networks, Mapping):
        return Transfer()
    ports = [port for port in networks.values() if isinstance(port, Mapping)]
    return Transfer(
        sum(_count(port.get("rx_bytes")) or 0 for port in ports),
        sum(_count(port.get("tx_bytes")) or 0 for port in ports),
    )


def _memory(memory: Mapping[str, Any]) -> MemoryUsage:
    """Return memory; the names of its parts differ between cgroup versions 1 and 2."""
    parts = table_in(memory, "stats")

    def part(*names: str) -> int | None:
        return next((count for n in names if (count := _count(parts.get(n))) is not None), None)

    used, inactive = _count(memory.get("usage")), part("total_inactive_file", "inactive_file")
    return MemoryUsage(
        used=used,
        working_set=None if used is None or inactive is None else max(0, used - inactive),
        anon=part("total_rss", "anon"),
        file=part("total_cache", "file"),
        shmem=part("total_shmem", "shmem"),
        limit=_count(memory.get("limit")) or None,
    )


def _transfer(entries: Any) -> Transfer:
    if not isinstance(entries, list):
        return Transfer()
    sums = {"read": 0, "write": 0}
    for entry in entries:
        op = str(entry.get("op")).lower() if isinstance(entry, Mapping) else ""
        if op in sums:
            sums[op] += _count(entry.get("value")) or 0
    return Transfer(sums["read"], sums["write"])


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _seconds(nanoseconds: Any) -> float | None:
    count = _count(nanoseconds)
    return None if count is None else count / 1e9
