"""What owners asked for bounds what is set: quotas and CPU lists; weights are multiplied by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dltools.notation.resources import format_cpus, parse_cpus
from dltools.observations.schema import DEFAULT_CPU_WEIGHT
from dltools.plan.policy.owner import Owner
from dltools.plan.realisation.base import Realisation
from dltools.plan.realisation.settings import LEAST_WEIGHT, MOST_WEIGHT, Settings


def respecting(found: Realisation, owners: Mapping[str, Owner], cpus: float) -> Realisation:
    """Return a realisation within what the owners of a host's containers asked for, by id."""
    settings = {key: within(wanted, owners[key], cpus) for key, wanted in found.settings.items()}
    notes = {
        key: "; ".join(filter(None, (found.notes.get(key), _note(one, owners[key]))))
        for key, one in settings.items()
    }
    return replace(found, settings=settings, notes={**found.notes, **notes})


def within(wanted: Settings, owner: Owner, cpus: float) -> Settings:
    """Return settings within what an owner asked for, on a host of so many CPUs (0: unknown).

    No quota becomes the owner's, and all CPUs become the owner's list. A weight is multiplied by
    the owner's own, as a multiple of the default.
    """
    found = dict(wanted)
    if "cpus" in found and owner.cpus is not None and not 0 < cpus <= owner.cpus:
        planned = found["cpus"]
        found["cpus"] = owner.cpus if planned is None else min(owner.cpus, planned)
    if "cpu_weight" in found:
        weight = found["cpu_weight"] * owner.ratio
        found["cpu_weight"] = float(round(min(MOST_WEIGHT, max(LEAST_WEIGHT, weight))))
    if "cpuset" in found and owner.cpuset is not None:
        listed = set(parse_cpus(owner.cpuset)) & set(parse_cpus(found["cpuset"] or owner.cpuset))
        found["cpuset"] = format_cpus(sorted(listed)) if listed else owner.cpuset
    return found


def _note(setting: Settings, owner: Owner) -> str:
    """Return what an owner's wish has made of a setting, "" where it is as without it."""
    notes = []
    if setting.get("cpus") is not None and setting["cpus"] == owner.cpus:
        notes.append(f"its owner asked for {owner.cpus:g} CPUs at most")
    if "cpu_weight" in setting and owner.ratio != 1:
        notes.append(f"its owner asked for a weight of {owner.ratio * DEFAULT_CPU_WEIGHT:g}")
    if "cpuset" in setting and owner.cpuset is not None:
        notes.append(f"its owner asked for CPUs {owner.cpuset}")
    return "; ".join(notes)
