"""Measured and set values in words: sizes, CPU use, limits, settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size

from dltools.notation.limits import DEFAULT_WEIGHT, IN_FORCE, from_columns, only, weight_of
from dltools.notation.resources import format_bytes, parse_cpus, short_uuid, union_of_cpus
from dltools.text import printable

if TYPE_CHECKING:
    from dltools.actions.settings import Settings


def clip(name: str, width: int) -> str:
    """Return a name made printable and cut to a width, two thirds of it from the end: names of one
    project begin alike."""
    text = printable(name)
    if cell_len(text) <= width:
        return text
    room = max(0, width - 1)
    tail = set_cell_size(text[::-1], room * 2 // 3)[::-1]
    return set_cell_size(text, room - room * 2 // 3) + "…" + tail


def named(row: Mapping[str, Any]) -> str:
    """Return a container's name, with a state that its limits do not say."""
    state = row["state"]
    return printable(row["container_name"] + ("" if state in _USUAL else f" ({state})"))


_USUAL = ("running", "paused", None)


def role(row: Mapping[str, Any]) -> str:
    """Return what a container is, and what shows it: server: publishes port 5432; - for nothing."""
    return ": ".join(filter(None, (row.get("role"), row.get("role_reason")))) or "-"


def listed_cpus(rows: Iterable[Mapping[str, Any]]) -> int:
    """Return how many CPUs are in the CPU lists of containers."""
    return len(parse_cpus(union_of_cpus(None, (row.get("cpuset") for row in rows)) or ""))


def limits(row: Mapping[str, Any], cpus: float | None, listed: int) -> str:
    """Return the limits of a container, such as "0.5", "weight 10, CPUs 0-1" or "paused"; "-" for
    none. Its host has `cpus`, of which `listed` are in the CPU lists of its containers."""
    settings = from_columns(row, IN_FORCE)
    quota, weight, cpuset = settings.get("cpus"), weight_of(settings), settings.get("cpuset")
    words = ["paused"] if row["state"] == "paused" else []
    if row.get("turn_seconds"):
        words.append(f"turns {row['turn_seconds']:g} s{_on_device(row.get('turn_queue'))}")
    if quota is not None and quota != cpus:
        words.append(f"{quota:.3g}")
    if weight != DEFAULT_WEIGHT:
        words.append(f"weight {weight:g}")
    if cpuset and len(parse_cpus(cpuset)) < max(cpus or 0.0, listed):
        words.append(f"CPUs {cpuset}")
    return ", ".join(words) or "-"


def cpu_use(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Return the cores that a container or host has used since the row before, else since its
    start."""
    used, start = row["cpu_seconds"], row.get("started_at")
    if used is None:
        return "-"
    if before and before["cpu_seconds"] is not None and before.get("started_at") == start:
        used, start = max(0.0, used - before["cpu_seconds"]), before["time"]
    span = (row["time"] - start).total_seconds() if start else 0
    return f"{used / span:z.2f}" if span > 0 else "-"


def size(count: float | None) -> str:
    """Return a number of bytes in three digits, - where it is unknown."""
    return "-" if count is None else format_bytes(count)


def settings_in_words(settings: Settings) -> str:
    """Return all settings of a container in words: "1.5 cpus, weight 300, paused". Defaults are
    left out; "no limit" are defaults alone."""
    return ", ".join(_words(settings).values()) or ("no limit" if settings else "-")


def changes_in_words(before: Settings, after: Settings) -> tuple[str, str]:
    """Return what differs between settings before and after; where nothing does, what limits."""
    names = {name for name, _ in before.items() ^ after.items()}
    if not names:
        return (settings_in_words(before),) * 2
    return _words_of(before, names), _words_of(after, names)


def _words_of(settings: Settings, names: Collection[str]) -> str:
    """Return some of a container's settings in words, defaults too; "-" for those not known."""
    own = only(settings, names)
    words = {name: word for name, word in _DEFAULTS.items() if name in own} | _words(own)
    return ", ".join(words.values()) or "-"


_DEFAULTS = {
    "state": "running",
    "cpus": "no quota",
    "weight": f"weight {DEFAULT_WEIGHT:g}",
    "cpuset": "on all CPUs",
    "memory": "no memory limit",
}


def _words(settings: Settings) -> dict[str, str]:
    """Return what each setting that is no default says, by its name."""
    state, weight = settings.get("state", "running"), settings.get("weight")
    words = {
        "state": "" if state == "running" else str(state),
        "turn_s": _turn(settings) if settings.get("turn_s") else "",
        "cpus": _said(settings, "cpus", "{:g} cpus"),
        "weight": "" if weight in (None, DEFAULT_WEIGHT) else f"weight {weight:g}",
        "cpuset": _said(settings, "cpuset", "on CPUs {}"),
        "host": _said(settings, "host", "on {}"),
        "delivered": _said(settings, "delivered", "delivered to {}"),
        "memory": "" if settings.get("memory") is None else size(settings["memory"]),
    }
    return {name: word for name, word in words.items() if word}


def _said(settings: Mapping[str, Any], name: str, form: str) -> str:
    value = settings.get(name)
    return "" if value in (None, "") else form.format(value)


def _turn(settings: Settings) -> str:
    """Return "turn 2, 5 s of 20 s", on a device or on the CPUs, or "turns of 5 s"."""
    place = f"turn {settings['group'] + 1}," if "group" in settings else "turns of"
    period = f" of {settings['period_s']:.3g} s" if "period_s" in settings else ""
    return f"{place} {settings['turn_s']:.3g} s{period}{_on_device(settings.get('queue'))}"


def gist(reason: str) -> str:
    """Return the part of an action's reason that says most: its place in the queue, else how it
    begins."""
    first, *more = reason.split("; ")
    places = (part for part in more if part.endswith(" in the queue"))
    return next(places, first.partition(": ")[0])


def _on_device(queue: str | None) -> str:
    return f" on {printable(short_uuid(queue))}" if queue else ""
