"""Policies as the command line names them: plug-ins, parameters and realisations."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dltools.cli.exits import print_message
from dltools.errors import ConfigError

if TYPE_CHECKING:
    from dltools.plan.realisation.mode import RealisationOptions


def allowed_plugins() -> list[str] | None:
    """Return which plug-ins may load: all, or those that DLTOOLS_PLUGINS names ("": none)."""
    names = os.environ.get("DLTOOLS_PLUGINS")
    return None if names is None else [name for name in names.split(",") if name]


def warn_of_broken_plugins() -> None:
    """Print a warning for each plug-in that does not load; the others are used."""
    from dltools.plan.policy import registry

    for wrong in registry.faults(allowed_plugins()).values():
        print_message(f"{wrong}; left out")


def parse_assignments(assignments: Iterable[str]) -> dict[str, object]:
    """Return the values of --set, NAME=VALUE each, by name. Raises `ConfigError`."""
    found: dict[str, object] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set {assignment}: not NAME=VALUE")
        found[key.strip()] = value.strip()
    return found


def realisation_options(text: str, quantum: float = 2.0) -> RealisationOptions:
    """Return how allocations become settings: --realize, and --quantum in seconds. Raises
    `ConfigError`."""
    from dltools.plan.realisation.mode import Mode, RealisationOptions

    if not 0.1 <= quantum <= 3600:
        raise ConfigError(f"--quantum must be between 0.1 and 3600 seconds, not {quantum:g}")
    if text == "auto":
        return RealisationOptions(None, quantum)
    try:
        return RealisationOptions(Mode(text), quantum)
    except ValueError:
        known = ", ".join(("auto", *(mode.value for mode in Mode)))
        raise ConfigError(f"--realize {text}: unknown mode; known: {known}") from None
