"""Learns from samples what the owners of containers asked for.

Whose limits are in force is not always known. dl-probe knows it where it can read dl-apply's
journal; elsewhere it takes the limits in force for the owner's. So what a plan has set is
remembered, and is no wish of the owner when it is seen in force. All of it ours.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dltools.notation.resources import parse_cpus
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.policy.owner import Owner
from dltools.plan.realisation.settings import Settings, differs

_REMEMBERED = 6
"""Values of a setting that are remembered: a plan may be applied when the next ones are made."""

_NAMES = ("cpus", "cpu_weight", "cpuset")
"""The settings that owners ask for."""


def limits_of(cpus: float | None, weight: float | None, cpuset: str | None) -> Settings:
    """Return limits as a recording says them, the defaults for what is no limit."""
    is_quota = cpus is not None and 0 < cpus < math.inf
    is_weight = weight is not None and 0 < weight < math.inf
    return {
        "cpus": cpus if is_quota else None,
        "cpu_weight": weight if is_weight else DEFAULT_CPU_WEIGHT,
        "cpuset": cpuset if cpuset and parse_cpus(cpuset) else None,
    }


def told(owner: Owner, said: Settings, present: Settings) -> Owner:
    """Return what is known of an owner after a sample.

    `said`: what dl-probe takes for the owner's; `present`: what is in force. A limit in force that
    plans have set lately tells nothing of the owner.
    """
    wish: Settings = {
        "cpus": owner.cpus,
        "cpu_weight": owner.ratio * DEFAULT_CPU_WEIGHT,
        "cpuset": owner.cpuset,
    }
    if said == wish and owner.is_known:
        return owner
    for name in _NAMES:
        ours = ({name: value} for value in owner.planned.get(name, ()))
        is_in_force = said[name] is not None and not _differs({name: said[name]}, present)
        if not is_in_force or all(_differs(one, present) for one in ours):
            wish[name] = said[name]
    ratio = wish["cpu_weight"] / DEFAULT_CPU_WEIGHT
    return replace(owner, cpus=wish["cpus"], ratio=ratio, cpuset=wish["cpuset"], is_known=True)


def _differs(wanted: Settings, present: Settings) -> bool:
    return differs(wanted, present, math.inf)


def first_seen(owner: Owner, present: Settings, cpus: float) -> Owner:
    """Return what to go by where nothing tells whose the limits are that a container has when it
    is first seen: its quota and its list are not widened."""
    quota, cpuset = present["cpus"], present["cpuset"]
    is_listed = cpuset is not None and len(parse_cpus(cpuset)) < cpus
    is_bounded = quota is not None and quota < cpus
    return replace(
        owner,
        cpus=quota if is_bounded else None,
        cpuset=cpuset if is_listed else None,
        is_known=True,
    )


def after_plan(owner: Owner, setting: Settings) -> Owner:
    """Return what is known of an owner after a plan has set this."""
    planned = dict(owner.planned)
    for name in _NAMES:
        values = planned.get(name, ())
        if name in setting and setting[name] not in values[-1:]:
            others = tuple(value for value in values if value != setting[name])
            planned[name] = (*others, setting[name])[-_REMEMBERED:]
    return owner if planned == owner.planned else replace(owner, planned=planned)
