"""The limits that owners asked for: how samples show them, and how they bound what plans set.

`recorded_host` learns it from samples and `rounds` notes what plans have set; `realise` keeps
within it. Quotas and CPU lists are bounds, weights are multiplied by the owner's.

Whose limits are in force is not always known. dl-probe knows it where it can read dl-apply's
journal; elsewhere it takes the limits in force for the owner's. So what plans have set is
remembered, and does not count as the owner's when it is seen in force. All of this is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from dltools.notation.cpu_weights import DEFAULT_CPU_WEIGHT, whole_weight
from dltools.notation.limits import CPU_LIMITS, differs, only
from dltools.notation.resources import format_cpus, parse_cpus
from dltools.plan.realisation.settings import Settings
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.owner import Owner

_REMEMBERED = 6
"""Values of a setting that are remembered: a plan may be applied when the next ones are made."""


def limits_of(cpus: float | None, weight: float | None, cpuset: str | None) -> Settings:
    """Return the limits of a recorded row, with defaults for what is not a limit."""
    is_quota = cpus is not None and 0 < cpus < math.inf
    is_weight = weight is not None and 0 < weight < math.inf
    return {
        "cpus": cpus if is_quota else None,
        "weight": weight if weight is not None and is_weight else DEFAULT_CPU_WEIGHT,
        "cpuset": cpuset if cpuset and parse_cpus(cpuset) else None,
    }


def owner_after_sample(owner: Owner, said: Settings, present: Settings) -> Owner:
    """Return what is known of an owner after a sample.

    `said`: what dl-probe takes for the owner's; `present`: what is in force. A limit in force that
    plans have set lately tells nothing of the owner.
    """
    wish: Settings = {
        "cpus": owner.cpus,
        "weight": owner.ratio * DEFAULT_CPU_WEIGHT,
        "cpuset": owner.cpuset,
    }
    if said == wish and owner.is_known:
        return owner
    for name in CPU_LIMITS:
        one = only(said, (name,))
        ours = ({str(name): value} for value in owner.planned.get(name, ()))
        is_in_force = said[name] is not None and not _differs(one, present)
        if not is_in_force or all(_differs(planned, present) for planned in ours):
            wish |= one
    ratio = wish["weight"] / DEFAULT_CPU_WEIGHT
    return replace(owner, cpus=wish["cpus"], ratio=ratio, cpuset=wish["cpuset"], is_known=True)


def _differs(wanted: Mapping[str, object], present: Settings) -> bool:
    return differs(wanted, present, math.inf)


def owner_when_first_seen(owner: Owner, present: Settings, cpus: float) -> Owner:
    """Return the owner of a container when it is first seen, and nothing tells whose its limits
    are: its quota and its CPU list are taken for the owner's."""
    quota, cpuset = present["cpus"], present["cpuset"]
    is_listed = cpuset is not None and len(parse_cpus(cpuset)) < cpus
    is_bounded = quota is not None and quota < cpus
    return replace(
        owner,
        cpus=quota if is_bounded else None,
        cpuset=cpuset if is_listed else None,
        is_known=True,
    )


def owner_after_plan(owner: Owner, setting: Settings) -> Owner:
    """Return what is known of an owner after a plan has set this."""
    planned = dict(owner.planned)
    for name in CPU_LIMITS:
        values = planned.get(name, ())
        if name in setting and setting[name] not in values[-1:]:
            others = tuple(value for value in values if value != setting[name])
            planned[name] = (*others, setting[name])[-_REMEMBERED:]
    return owner if planned == owner.planned else replace(owner, planned=planned)


def within_owners(found: Realisation, owners: Mapping[str, Owner], cpus: float) -> Realisation:
    """Return a realisation within what the owners of a host's containers asked for, by id."""
    settings = {
        key: within_owner(wanted, owners[key], cpus) for key, wanted in found.settings.items()
    }
    notes = {
        key: "; ".join(filter(None, (found.notes.get(key), _note(one, owners[key]))))
        for key, one in settings.items()
    }
    return replace(found, settings=settings, notes={**found.notes, **notes})


def within_owner(wanted: Settings, owner: Owner, cpus: float) -> Settings:
    """Return settings within what an owner asked for, on a host of so many CPUs (0: unknown).

    No quota becomes the owner's, and all CPUs become the owner's list. A weight is multiplied by
    the owner's own, as a multiple of the default.
    """
    found = wanted.copy()
    if "cpus" in found and owner.cpus is not None and not 0 < cpus <= owner.cpus:
        planned = found["cpus"]
        found["cpus"] = owner.cpus if planned is None else min(owner.cpus, planned)
    if "weight" in found:
        found["weight"] = whole_weight(found["weight"] * owner.ratio)
    if "cpuset" in found and owner.cpuset is not None:
        listed = set(parse_cpus(owner.cpuset)) & set(parse_cpus(found["cpuset"] or owner.cpuset))
        found["cpuset"] = format_cpus(sorted(listed)) if listed else owner.cpuset
    return found


def _note(setting: Settings, owner: Owner) -> str:
    """Return what an owner's wish has made of a setting, "" where it is as without it."""
    notes = []
    if setting.get("cpus") is not None and setting["cpus"] == owner.cpus:
        notes.append(f"its owner asked for {owner.cpus:g} CPUs at most")
    if "weight" in setting and owner.ratio != 1:
        notes.append(f"its owner asked for a weight of {owner.ratio * DEFAULT_CPU_WEIGHT:g}")
    if "cpuset" in setting and owner.cpuset is not None:
        notes.append(f"its owner asked for CPUs {owner.cpuset}")
    return "; ".join(notes)
