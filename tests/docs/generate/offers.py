"""What --set offers: the parameters of each policy, as shells complete them."""

from __future__ import annotations

import re

from docs.generate.parsers import Tool

from dltools.plan.policy import registry
from dltools.plan.policy.parameters import describe


def offers() -> dict[str, str]:
    """Return by policy NAME= for each number and NAME=VALUE for each choice, separated by
    spaces; policies without parameters are left out."""
    found = {}
    for name, policy in registry.policies([]).items():
        words = [
            f"{p['name']}={choice}"
            for p in describe(policy.parameters)
            for choice in (("true", "false") if p["type"] == "bool" else p["choices"] or ("",))
        ]
        if words:
            found[name] = " ".join(words)
    return found


def default_policies(tool: Tool) -> list[str]:
    """Return the policies of a tool where --policy is not given: its default, or those that its
    help names."""
    (option,) = (one for one in tool.options if one.long == "--policy")
    named = re.findall(r"\w+", option.default or option.help)
    return [name for name in named if name in offers()]
