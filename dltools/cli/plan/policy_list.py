"""The list of policies and their parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dltools.cli.policies import allowed_plugins, warn_of_broken_plugins
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import describe


def print_policies() -> None:
    """Print each policy with its parameters, their defaults, ranges and sources."""
    warn_of_broken_plugins()
    for name, policy in sorted(registry.policies(allowed_plugins()).items()):
        print(f"{name}: {policy.help}")
        for parameter in describe(policy.parameters):
            default = json.dumps(parameter["default"])
            print(f"    {parameter['name']}={default}{_bounds(parameter)}: {parameter['help']} "
                  f"[{parameter['source']}]")  # fmt: skip


def _bounds(parameter: Mapping[str, Any]) -> str:
    if parameter["type"] == "bool":
        return ", true or false"
    if parameter["type"] == "choice":
        return f", {' or '.join(parameter['choices'])}"
    return f", {parameter['low']:g} to {parameter['high']:g}"
