"""Changing the settings of a container: record the original ones, change, read back.

A change that fails is reverted at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dltools.apply.journal import Entry
from dltools.apply.original import Originals, is_restored, restore
from dltools.apply.reasons import GONE, ended_meanwhile
from dltools.engine.interface import (
    CpuLimits,
    Engine,
    GoneError,
    GpuAccess,
    LocatedContainer,
    RefusedError,
)
from dltools.engine.limits import limit_files
from dltools.engine.limits.cpu_limits import Locator, current_settings
from dltools.plan.realisation.settings import differs
from dltools.plan.records import Result, Status


class SettingsUpdate:
    """Changes settings of one engine's containers. The journal has their entries before."""

    def __init__(self, engine: Engine, locator: Locator, originals: Originals) -> None:
        self._engine = engine
        self._locator = locator
        self._originals = originals

    def apply(self, found: Result, located: LocatedContainer, wanted: CpuLimits) -> Result:
        """Apply settings to a container and return what became of it."""
        before = self._originals.describe(located, wanted=wanted)
        is_new = self._originals.record(before)
        container = located.container
        had_gpu = container.gpu is not GpuAccess.NONE and self._engine.can_open_gpu(container)
        result = self._try(found, located, wanted)
        if result.status is not Status.APPLIED:
            return self._revert(result, before, is_new)
        if had_gpu and self._engine.can_open_gpu(container) is False:
            reason = "the update has cut off its GPU: restart the container"
            return replace(result, status=Status.FAILED, error=reason)
        return result

    def _try(self, found: Result, located: LocatedContainer, wanted: CpuLimits) -> Result:
        try:
            if located.container.gpu is GpuAccess.FRAGILE:
                limit_files.write_settings(located, wanted)
            else:
                self._engine.set_limits(located, wanted, partial(self._has, located, wanted))
            return read_back(self._engine, found, located, wanted)
        except GoneError:
            return replace(found, status=Status.STALE, error=GONE)
        except RefusedError as error:
            failed = replace(found, status=Status.FAILED, error=str(error))
            return ended_meanwhile(self._engine, failed)
        except OSError as error:
            return replace(
                found,
                error="an engine update could cut off its GPU, and its cgroup "
                f"files cannot be written: {error.strerror or error}",
            )

    def _has(self, located: LocatedContainer, wanted: CpuLimits) -> bool:
        """Tell whether the limits in force now are those wanted."""
        return not differs(wanted, current_settings(self._engine, located), located.usable_cpus)

    def _revert(self, result: Result, before: Entry, is_new: bool) -> Result:
        """Restore what was in force before a change that failed, on the engine's record and in the
        kernel's files. Return the result with what is in force now."""
        try:
            located = self._restored(before)
            current = current_settings(self._engine, located)
        except GoneError:
            self._forget(before, is_new)
            return replace(result, status=Status.STALE, error=GONE)
        except (RefusedError, OSError) as error:
            reason = f"{result.error}; the change could not be reverted: {error}"
            return replace(result, error=reason)
        after = {name: value for name, value in current.items() if name in result.before}
        if differs(before.settings, current, located.usable_cpus):
            reason = f"{result.error}; some settings could not be reverted"
            return replace(result, after=after, error=reason)
        self._forget(before, is_new)
        return replace(result, after=after)

    def _restored(self, before: Entry) -> LocatedContainer:
        located = self._locator.find(before.container_id)
        if is_restored(self._engine, located, before):
            return located
        restore(self._engine, located, before)
        return self._locator.find(before.container_id)

    def _forget(self, before: Entry, is_new: bool) -> None:
        if is_new:
            self._originals.forget(before)


def read_back(
    engine: Engine, found: Result, located: LocatedContainer, wanted: Mapping[str, Any]
) -> Result:
    """Return a result with the settings that are in force now, and whether they are as wanted."""
    try:
        current = current_settings(engine, located)
    except GoneError:
        return replace(found, status=Status.STALE, error=GONE)
    after = {name: value for name, value in current.items() if name in wanted}
    if differs(wanted, after, located.usable_cpus):
        reason = "the engine accepted the change, but other settings are in force"
        return replace(found, status=Status.FAILED, after=after, error=reason)
    return replace(found, status=Status.APPLIED, after=after)
