"""Policies as the command line names them: plug-ins, parameters, realisations, and their list."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dltools.actions.turn_lengths import MEAN_TURN_S
from dltools.cli.exits import print_message
from dltools.errors import ConfigError
from dltools.plan.policy import registry
from dltools.plan.policy.interface import classes_of
from dltools.plan.policy.parameters import build, describe, names
from dltools.plan.realisation.options import Mode, QueueParameters, RealisationOptions

if TYPE_CHECKING:
    from dltools.plan.policy.interface import Policy


def allowed_plugins() -> list[str] | None:
    """Return which plug-ins may load: all, or those that DLTOOLS_PLUGINS names ("": none)."""
    allowed = os.environ.get("DLTOOLS_PLUGINS")
    return None if allowed is None else [name for name in allowed.split(",") if name]


def warn_of_broken_plugins() -> None:
    """Print a warning for each plug-in that does not load; the others are used."""
    for wrong in registry.faults(allowed_plugins()).values():
        print_message(f"{wrong}; left out")


def parse_assignments(assignments: Iterable[str]) -> dict[str, object]:
    """Return the values of --set, NAME=VALUE each, by name. Raises `ConfigError`."""
    values: dict[str, object] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set {assignment}: not NAME=VALUE")
        values[key.strip()] = value.strip()
    return values


def assign(
    policy: Policy, given: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return those of some parameters that are a policy's, and those of every queue. A name that
    both have, such as explore, is for both."""
    of_queue, of_policy = names(QueueParameters), names(policy.parameters)
    return (
        {name: value for name, value in given.items() if name in of_policy or name not in of_queue},
        {name: value for name, value in given.items() if name in of_queue},
    )


def warn_of_unused_quantum(mode: str, quantum_s: float | None) -> None:
    """Warn on standard error if --quantum has no effect, because jobs take no turns."""
    if quantum_s is not None and mode not in ("auto", "rotate"):
        print_message(f"--quantum has no effect with --realize {mode}: only rotate gives turns")


def realisation_options(
    text: str, quantum: float | None = None, queue: Mapping[str, object] | None = None
) -> RealisationOptions:
    """Return how allocations become settings: --realize, --quantum in seconds (None: auto), and the
    parameters of the queue. Raises `ConfigError`."""
    quantum = MEAN_TURN_S if quantum is None else quantum
    if not 0.1 <= quantum <= 3600:
        raise ConfigError(f"--quantum must be between 0.1 and 3600 seconds, not {quantum:g}")
    parameters = build(QueueParameters, queue or {})
    if text == "auto":
        return RealisationOptions(None, quantum, parameters)
    try:
        return RealisationOptions(Mode(text), quantum, parameters)
    except ValueError:
        modes = ", ".join(("auto", *(mode.value for mode in Mode)))
        raise ConfigError(f"--realize {text}: unknown mode; known: {modes}") from None


def print_policies() -> None:
    """Print each policy with its parameters (default, range, source) and its classes."""
    warn_of_broken_plugins()
    for name, policy in sorted(registry.policies(allowed_plugins()).items()):
        print(f"{name}: {policy.help}")
        _print_parameters(policy.parameters)
        for meaning, group in groupby(classes_of(policy), lambda kind: kind.meaning):
            classes = list(group)
            span = _span([kind.name for kind in classes])
            words = _span([kind.word for kind in classes])
            print(f"    class {span}, {words}: {meaning}")

    print("every policy: jobs that cannot all run at once, and what owners asked for")
    _print_parameters(QueueParameters)


def _print_parameters(cls: type[Any]) -> None:
    for parameter in describe(cls):
        default = json.dumps(parameter["default"])
        print(
            f"    {parameter['name']}={default}{_bounds(parameter)}: {parameter['help']} "
            f"[{parameter['source']}]"
        )


def _span(words: Sequence[str]) -> str:
    """Return the first and last of words that belong together."""
    return words[0] if len(words) == 1 else f"{words[0]} to {words[-1]}"


def _bounds(parameter: Mapping[str, Any]) -> str:
    if parameter["type"] == "bool":
        return ", true or false"
    if parameter["type"] == "choice":
        return f", {' or '.join(parameter['choices'])}"
    return f", {parameter['low']:g} to {parameter['high']:g}"
