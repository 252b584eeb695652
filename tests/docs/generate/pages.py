"""The generated parts of man pages."""

import re
from collections.abc import Iterable
from importlib import import_module
from itertools import groupby
from typing import Any

from docs.generate.mdoc import escaped, names_of, paragraph, value
from docs.generate.parsers import Option, Tool

from dltools.observations.schema import COLUMNS, Column
from dltools.plan.policy import registry
from dltools.plan.policy.interface import Policy, classes_of
from dltools.plan.policy.parameters import describe
from dltools.plan.realisation.options import QueueParameters
from dltools.probe.progress import FAMILIES


def parts(tools: Iterable[Tool]) -> dict[str, dict[str, str]]:
    found = {f"man/{tool.name}.1": _of_tool(tool) for tool in tools}
    policies = registry.policies([])
    found["man/dl-plan.1"]["policies"] = _policies(policies.values())
    found["man/dl-probe.1"]["families"] = "\n".join(map(_family, FAMILIES))
    found["man/dltools-observations.5"] = {"columns": "\n".join(map(_column, COLUMNS))}
    found["man/dltools-policies.7"] = {
        **{
            f"classes of {name}": _classes(policy)
            for name, policy in policies.items()
            if classes_of(policy)
        },
        **{
            f"parameters of {name}": _parameters(policy.parameters)
            for name, policy in policies.items()
        },
        "parameters of every policy": _parameters(QueueParameters),
    }
    return found


def _of_tool(tool: Tool) -> dict[str, str]:
    found = {"options": _options(tool), "exit status": _exits(tool)}
    if any(option.variable for option in tool.options):
        found["variables"] = _variables(tool.options)
    return found


def _options(tool: Tool) -> str:
    lines: list[str] = []
    by_group = sorted(tool.options, key=lambda option: option.group)  # "" comes first
    for group, members in groupby(by_group, lambda option: option.group):
        lines += [f".Ss {group}"] if group else []
        lines += [".Bl -tag -width Ds", *(_item(tool, option) for option in members), ".El"]
    return "\n".join(lines)


def _item(tool: Tool, option: Option) -> str:
    names = " , ".join(f"Fl {names_of(name)}" for name in option.names)
    if option.long == "--help":
        return f".It {names}\nPrint a summary of the options and exit."
    more = [option.help]
    if option.least is not None:
        more.append(f"At least {option.least:g}.")
    if option.default:
        more.append(f"The default is {option.default}.")
    return f".It {names}{_value(option)}\n{paragraph(' '.join(more), tool.name, _values(tool))}"


def _values(tool: Tool) -> set[str]:
    """Return the words by which the help of a tool names values: FILE, TIME, KIND, ..."""
    metavars = [tool.argument, *(option.metavar for option in tool.options)]
    return {word for metavar in metavars for word in re.findall(r"[A-Z]+", metavar)}


def _value(option: Option) -> str:
    if not option.metavar:
        return ""
    if option.choices and option.metavar == option.long.strip("-").upper():
        return f" Cm {' | '.join(option.choices)}"
    return f" {value(option.metavar)}"


def _variables(options: Iterable[Option]) -> str:
    return "\n".join(
        f".It Ev {option.variable}\nDefault of\n.Fl {names_of(option.long)} ."
        for option in options
        if option.variable
    )


def _exits(tool: Tool) -> str:
    return "\n".join(
        f".It {code}\n{paragraph(meaning, tool.name)}" for code, meaning in tool.exits.items()
    )


def _column(column: Column) -> str:
    kinds = "all kinds" if len(column.kinds) == 5 else ", ".join(column.kinds)
    unit = f", {column.unit}" if column.unit else ""
    return (
        f".It Va {column.name}\n{column.type.value}, {column.instrument.value}{unit}; {kinds}.\n"
        f"{escaped(column.help)}"
    )


def _policies(policies: Iterable[Policy]) -> str:
    return "\n".join(f".It Cm {policy.name}\n{escaped(policy.help)}" for policy in policies)


def _family(name: str) -> str:
    """Return what the docstring of a family says, up to its first sentence or example."""
    text = import_module(f"dltools.probe.progress.families.{name}").__doc__ or ""
    return f".It {name}\n{escaped(re.split(r': `|[.](?: |$)', text, maxsplit=1, flags=re.M)[0])}"


def _classes(policy: Policy) -> str:
    """Describe the classes of a policy; those that mean the same in one line."""
    lines = []
    for meaning, members in groupby(classes_of(policy), lambda one: one.meaning.replace("`", "")):
        first, *others = members
        names = f"{first.name} to {others[-1].name}" if others else first.name
        word = "" if others or first.word == first.name else f"{first.word}: "
        lines += [f".It {names}", escaped(f"{word}{meaning}")]
    width = max(len(line) for line in lines[::2]) - len(".It ")
    return "\n".join([f".Bl -tag -width {'m' * width} -compact", *lines, ".El"])


def _parameters(cls: type[Any]) -> str:
    described = describe(cls)
    if not described:
        return "It has no parameters."
    width = max(len(p["name"]) for p in described)
    items = [
        f".It Va {p['name']} No = {str(p['default']).lower()}\n"
        f"{escaped(p['help'])}; {_bounds(p)} [{p['source']}]"
        for p in described
    ]
    return "\n".join([f".Bl -tag -width {'m' * width} -compact", *items, ".El"])


def _bounds(p: dict[str, Any]) -> str:
    if p["type"] == "bool":
        return "true or false"
    return " or ".join(p["choices"]) if p["choices"] else f"{p['low']:g} to {p['high']:g}"
