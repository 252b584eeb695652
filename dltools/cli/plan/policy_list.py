"""The list of policies, with their parameters and classes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from dltools.cli.policies import allowed_plugins, warn_of_broken_plugins
from dltools.plan.policy import registry
from dltools.plan.policy.interface import classes_of
from dltools.plan.policy.parameters import describe
from dltools.plan.realisation.mode import QueueParameters


def print_policies() -> None:
    """Print each policy with its parameters (default, range, source) and its classes."""
    warn_of_broken_plugins()
    for name, policy in sorted(registry.policies(allowed_plugins()).items()):
        print(f"{name}: {policy.help}")
        _print_parameters(policy.parameters)
        for meaning, group in groupby(classes_of(policy), lambda one: one.meaning):
            classes = list(group)
            names = _span([one.name for one in classes])
            words = _span([one.word for one in classes])
            print(f"    class {names}, {words}: {meaning}")

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
