"""A container as it was found, and how it is put back: the engine's record and the kernel's files.

The two can differ. An engine notes a change before the kernel has taken it, and what the kernel
then refuses stays on record: unseen until the container restarts, and in the way of every update.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from dltools.apply import gpu, limits
from dltools.apply.gpu import Access
from dltools.apply.journal import Entry
from dltools.apply.limits import Place
from dltools.engine.containers import Engine, RefusedError
from dltools.engine.pauses import Run
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.realisation.settings import Settings


def entry(engine: Engine, place: Place, run: Run, state: str | None = None) -> Entry:
    """Return a container as it is now, for the journal."""
    container = place.container
    return Entry(
        engine=engine.id,
        container_id=container.id,
        container_name=container.name,
        fields={name: container.host_config.get(name) or 0 for name in limits.FIELDS},
        settings=limits.in_force(place),
        kernel=limits.exactly(place),
        state=state,
        since=stamp(),
        run=run,
    )


def stamp() -> str:
    """Return the time now, in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now(engine: Engine, place: Place) -> Settings:
    """Return the settings in force now, from a fresh inspection where it takes one."""
    if place.cgroup is not None and place.cgroup.exists:
        return limits.in_force(place)
    container = engine.inspect(place.container.id)
    return limits.in_force(replace(place, container=container, cgroup=None))


def is_back(place: Place, found: Entry) -> bool:
    """Tell whether a container is as it was found: the kernel's files where they were seen then,
    and by its effect the engine's record.

    What was written past the engine does not outlive the container's processes.
    """
    if gpu.access(place.container) is Access.HOOK and not place.container.pid:
        return True
    if found.kernel and not _same(limits.exactly(place), found.kernel):
        return False
    record, then = (limits.recorded(fields, place)
                    for fields in (place.container.host_config, found.fields))  # fmt: skip
    if limits.version(place) == 2:  # many shares stand for one weight there
        record["cpu_weight"] = then["cpu_weight"]
    return record == then


def put_back(engine: Engine, place: Place, found: Entry) -> None:
    """Bring a container's CPU settings back to what was found.

    Raises `GoneError`, `RefusedError` or OSError.
    """
    if gpu.access(place.container) is Access.HOOK:
        limits.write_back(place, dict(found.kernel))
        return
    cpu = limits.stuck_cpu_fields(place, found.fields, engine.cpus)
    try:
        _update(engine, place, found, limits.original_cpu_fields(found.fields))
    except RefusedError:
        if not cpu:
            raise
        _update(engine, place, found, cpu)
    current = limits.exactly(place)
    if current and found.kernel and not _same(current, found.kernel):
        texts = {name: text for name, text in found.kernel.items()
                 if name != limits.CPUSET or current.get(name) != text}  # fmt: skip
        with suppress(OSError):  # not ours to write: what is in force is read back after this
            limits.write_back(place, texts)


def _update(engine: Engine, place: Place, found: Entry, cpu: Mapping[str, object]) -> None:
    fields = dict(cpu)
    if "cpuset" in found.settings:
        cpuset = found.settings["cpuset"]
        record = limits.recorded(place.container.host_config, place)
        if {cpuset} != {limits.in_force(place).get("cpuset"), record["cpuset"]}:
            fields |= limits.cpuset_fields(place, cpuset)
    weight = found.settings.get("cpu_weight", DEFAULT_CPU_WEIGHT)
    for candidate in limits.weight_fields(place, weight):
        engine.update(place.container.id, fields | candidate)
        current = limits.exactly(place)
        if not found.kernel or not current or _same(current, found.kernel):
            return


def _same(current: Mapping[str, str], then: Mapping[str, str]) -> bool:
    """Tell whether the kernel's files say what they said, as far as that was noted."""
    return bool(current) and all(current.get(name) == text for name, text in then.items())
