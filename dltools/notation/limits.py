"""The limits of a container, and how rows, plans, journals and results name them.

All that measures, plans, sets or simulates limits has them in this one type: what is in force, what
an engine has on its record, what an owner asked for. `dltools.actions.settings` adds the
turns to what plans want.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, cast

from dltools.notation.resources import count_cpus


class Limits(TypedDict, total=False):
    """Limits of a container: its quota in cores (None: no quota), its weight in Docker's shares
    (1024 is the default), a list of CPUs such as 0-3,6 (None: all), and memory in bytes (None: no
    limit). What is absent is not known, or not meant."""

    cpus: float | None
    weight: float
    cpuset: str | None
    memory: float | None


CPU_LIMITS: tuple[Literal["cpus", "weight", "cpuset"], ...] = ("cpus", "weight", "cpuset")
"""Names of the limits on CPUs."""

LIMITS = (*CPU_LIMITS, "memory")
"""Names of all limits."""

DEFAULT_WEIGHT = 1024.0
"""CPU weight of a container for which none was set."""

DEFAULTS: Limits = {"cpus": None, "weight": DEFAULT_WEIGHT, "cpuset": None}
"""The limits on CPUs of a container for which none was set."""

LEAST_CPUS = 0.01
"""Smallest quota in cores: the kernel's least quota of 1 ms in a period of 100 ms."""

LEAST_WEIGHT, MOST_WEIGHT = 2.0, 262144.0
"""Bounds of Docker's shares."""

V2_STEP = DEFAULT_WEIGHT / 100
"""One step of version 2 of cgroups, which is its least weight too: it has weights from 1 to 10,000,
and every cgroup begins with 100."""

WEIGHT = "cpu_weight"
"""How plans, journals, results and rows name the weight; the other names are as here."""

IN_FORCE: Mapping[str, str] = {
    "cpus": "cpu_limit_cores",
    "weight": WEIGHT,
    "cpuset": "cpuset",
    "memory": "memory_limit_bytes",
}
"""The columns of the limits that are in force."""

ASKED: Mapping[str, str] = {name: f"owner_{IN_FORCE[name]}" for name in CPU_LIMITS}
"""The columns of the limits that the owner asked for."""

_Settings = TypeVar("_Settings", bound=Mapping[str, object])


def written(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits, or settings with them, as plans, journals and results have them."""
    return {written_name(name): value for name, value in settings.items()}


def written_name(name: str) -> str:
    """Return how plans, journals and results name a limit; other names stay."""
    return WEIGHT if name == "weight" else name


def known_name(name: str) -> str:
    """Return the name of a limit that plans, journals and results name so; other names stay."""
    return "weight" if name == WEIGHT else name


def as_columns(limits: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the cells of limits, in `IN_FORCE` or `ASKED` columns; None where one is absent."""
    return {column: limits.get(name) for name, column in columns.items()}


def from_columns(row: Mapping[str, Any], columns: Mapping[str, str]) -> Limits:
    """Return the limits that a row has in `IN_FORCE` or `ASKED` columns, without those that it
    does not know."""
    cells = {name: row.get(column) for name, column in columns.items()}
    return cast(Limits, {name: value for name, value in cells.items() if value is not None})


def limits_at(rows: Mapping[str, Sequence[Any]], at: int, columns: Mapping[str, str]) -> Limits:
    """Return the limits that row `at` of a table by columns has, as `from_columns` does."""
    row = {name: known_cell(rows[name][at]) for name in columns.values() if name in rows}
    return from_columns(row, columns)


def known_cell(cell: Any) -> Any:
    """Return a cell, None for a number that is not finite."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def weight_of(limits: Mapping[str, Any]) -> float:
    """Return the weight of a container that has limits, or settings with them: the default one if
    they have none."""
    return float(limits.get("weight", DEFAULT_WEIGHT))


def whole_weight(weight: float, least: float = LEAST_WEIGHT, most: float = MOST_WEIGHT) -> float:
    """Return the nearest whole weight within bounds."""
    return float(round(min(most, max(least, weight))))


def is_step_of_v2(wanted: float, present: float) -> bool:
    """Tell whether a weight in force is the nearest that version 2 has to the one wanted.

    A weight in force that is not whole can only be of version 2.
    """
    if float(present).is_integer():
        return False
    return max(1, round(wanted / V2_STEP)) == round(present / V2_STEP)


def most_cpus(limits: Limits) -> float:
    """Return the most CPUs that quota and CPU list allow, infinity for no bound."""
    cpus, cpuset = limits.get("cpus"), limits.get("cpuset")
    listed = (cpuset and count_cpus(cpuset)) or math.inf
    return listed if cpus is None else min(listed, cpus)


def only(settings: _Settings, names: Container[str]) -> _Settings:
    """Return those settings that have one of these names."""
    kept = {name: value for name, value in settings.items() if name in names}
    return cast(_Settings, kept)


def differs(wanted: Mapping[str, Any], present: Mapping[str, Any], cpus: float) -> bool:
    """Tell whether settings differ by more than the engine's precision and read-back rounding.

    No quota and a quota of the host's `cpus` or more have the same effect; an unknown present
    setting differs from any.
    """
    for name, value in wanted.items():
        if name not in present:
            return True
        have = present[name]
        if name == "cpus":
            value, have = (cpus if v is None else min(v, cpus) for v in (value, have))
        if isinstance(value, int | float) and isinstance(have, int | float):
            is_near = abs(value - have) <= max(0.002, 0.01 * value)
            if not is_near and not (name == "weight" and is_step_of_v2(value, have)):
                return True
        elif value != have:
            return True
    return False
