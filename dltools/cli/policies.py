"""Policies as the command line names them: plug-ins, and how allocations are realised."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dltools.cli.exits import complain
from dltools.errors import ConfigError

if TYPE_CHECKING:
    from dltools.plan.realisation.mode import RealisationOptions


def allowed_plugins() -> list[str] | None:
    """Return which plug-ins may load: all, or those that DLTOOLS_PLUGINS names ("": none)."""
    names = os.environ.get("DLTOOLS_PLUGINS")
    return None if names is None else [name for name in names.split(",") if name]


def complain_of_plugins() -> None:
    """Say which plug-ins do not load; the others are none the worse for it."""
    from dltools.plan.policy import registry

    for wrong in registry.faults(allowed_plugins()).values():
        complain(f"{wrong}; left out")


def realisation_options(text: str, quantum: float = 2.0) -> RealisationOptions:
    """Return what --realize and --quantum ask for. Raises `ConfigError`."""
    from dltools.plan.realisation.mode import Mode, RealisationOptions

    if not 0.1 <= quantum <= 3600:
        raise ConfigError(f"--quantum {quantum:g}: from 0.1 to 3600 seconds")
    if text == "auto":
        return RealisationOptions(None, quantum)
    try:
        return RealisationOptions(Mode(text), quantum)
    except ValueError:
        known = ", ".join(("auto", *(mode.value for mode in Mode)))
        raise ConfigError(f"--realize {text}: unknown mode; known: {known}") from None
