"""What --set offers: the parameters of each policy, as shells complete them."""

import re
from typing import Any

from docs.generate.parsers import Tool

from dltools.plan.policy import registry
from dltools.plan.policy.interface import Policy
from dltools.plan.policy.parameters import describe, names
from dltools.plan.realisation.options import QueueParameters


def offers() -> dict[str, str]:
    """Return by policy NAME= for each number and NAME=VALUE for each choice, in a line."""
    found = {}
    for name, policy in registry.policies([]).items():
        words = [
            f"{p['name']}={choice}"
            for p in _parameters(policy)
            for choice in (("true", "false") if p["type"] == "bool" else p["choices"] or ("",))
        ]
        found[name] = " ".join(words)
    return found


def _parameters(policy: Policy) -> list[dict[str, Any]]:
    """Return a policy's parameters, then those of every policy."""
    own = describe(policy.parameters)
    return own + [p for p in describe(QueueParameters) if p["name"] not in names(policy.parameters)]


def default_policies(tool: Tool) -> list[str]:
    """Return the policies of a tool where --policy is not given: its default, or those that its
    help names."""
    (option,) = (one for one in tool.options if one.long == "--policy")
    named = re.findall(r"\w+", option.default or option.help)
    return [name for name in named if name in offers()]
