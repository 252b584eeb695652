"""Comparing an action with the settings that its container has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from dltools.apply.reasons import refusal
from dltools.engine.interface import LocatedContainer
from dltools.engine.limits.cpu_limits import (
    attainable_settings,
    out_of_bounds,
    settings_in_force,
    unfit_cpu_list,
)
from dltools.plan.realisation.settings import Settings, differs
from dltools.plan.records import Action, Result, Status


def compare(
    action: Action,
    found: Result,
    located: LocatedContainer,
    planned_at: datetime | None,
    *,
    made: Settings | None = None,
    is_forced: bool = False,
) -> Result:
    """Return what becomes of an update: PLANNED with the settings that it brings about, or why the
    container is left alone. `found` names the action and its container. `made` are the settings
    that this run has made: a plan from before it was seen that they are in force may expect others.
    `is_forced` also changes settings that neither the plan nor this run knows."""
    present = settings_in_force(located)
    before = {name: value for name, value in present.items() if name in action.set}
    found = replace(found, before=before, after=before)
    if refused := refusal(found, located.container, planned_at):
        return refused
    if reason := out_of_bounds(action.set):
        return replace(found, status=Status.FAILED, error=reason)
    wanted = attainable_settings(located, action.set)
    if not differs(wanted, before, located.usable_cpus):
        return replace(found, status=Status.UNCHANGED)
    known = [action.expect, made or {}]
    if not is_forced and not _is_known(present, known, action.expect, located.usable_cpus):
        reason = "its settings have changed since the plan was made"
        return replace(found, status=Status.STALE, error=reason)
    if reason := unfit_cpu_list(located, wanted, present):
        return replace(found, status=Status.SKIPPED, error=reason)
    return replace(found, status=Status.PLANNED, after={**before, **wanted})


def _is_known(
    present: Mapping[str, Any], known: Sequence[Settings], names: Iterable[str], cpus: float
) -> bool:
    """Tell whether each setting of these names is one of those that are known."""
    return all(
        any(not differs({name: one[name]}, present, cpus) for one in known if name in one)
        for name in names
    )
