"""The five tools as their parsers know them: options, arguments, defaults, exit codes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from importlib import import_module
from typing import Any

import typer

from dltools.plan.policy import registry
from dltools.plan.realisation.options import Mode
from dltools.report.plots.figure import KINDS as PICTURES
from dltools.report.result_rows import CRITERIA
from dltools.sim.generate import ARRIVALS

TOOLS = ("probe", "plan", "apply", "sim", "report")


class Takes(Enum):
    """What a shell offers for an option's value."""

    NOTHING = auto()  # the option takes no value
    TEXT = auto()
    CHOICE = auto()
    FILE = auto()
    DIRECTORY = auto()
    PARAMETER = auto()  # NAME=VALUE of a policy


@dataclass(frozen=True, slots=True)
class Option:
    """One option: `short` is "" or "-o", `metavar` the name of its value, "" for a flag; `choices`
    are the words that it takes, or begins with; `variable` the environment variable of its default.
    """

    short: str
    long: str
    metavar: str
    help: str
    takes: Takes
    choices: tuple[str, ...]
    default: str
    variable: str
    least: float | None
    group: str
    is_repeatable: bool

    @property
    def names(self) -> tuple[str, ...]:
        return (self.short, self.long) if self.short else (self.long,)

    @property
    def title(self) -> str:
        """The first sentence of the help, without its full stop."""
        return re.split(r"(?<=[\w')])[.;] |\.$", self.help)[0]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; `argument` is the name of what it reads, "" where it takes only options; `exits`
    are the meanings of its exit codes."""

    name: str
    help: str
    usage: str
    argument: str
    options: tuple[Option, ...]
    exits: dict[int, str]


_WORDS: dict[str, Callable[[], tuple[str, ...]]] = {
    "--policy": lambda: tuple(registry.policies([])),
    "--realize": lambda: ("auto", *Mode),
    "--plot": lambda: PICTURES,
    "--best": lambda: tuple(CRITERIA),
    "--generate": lambda: tuple(f"{kind}:" for kind in ARRIVALS),
}
"""What options take that are text to the parser."""

_FILES = ("FILE", "FILE|DIR/", "RECORDING")


def tools() -> list[Tool]:
    return [_tool(name) for name in TOOLS]


def _tool(name: str) -> Tool:
    command = typer.main.get_command(import_module(f"dltools.cli.{name}").app)
    context = command.make_context(f"dl-{name}", [], resilient_parsing=True)
    shown = [_option(p) for p in command.params if p.param_type_name == "option"]
    shown.append(_option(command.get_help_option(context)))
    arguments = [p.metavar or p.name for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
    exits = import_module(f"dltools.cli.{name}").EXITS
    return Tool(f"dl-{name}", command.help or "", usage, "".join(arguments), tuple(shown), exits)


def _option(parameter: Any) -> Option:
    *short, long = sorted(parameter.opts, key=len)
    choices = tuple(getattr(parameter.type, "choices", ())) or _WORDS.get(long, tuple)()
    text, _, written = " ".join((parameter.help or "").split()).partition(" [default: ")
    metavar = "" if parameter.is_flag else parameter.metavar or long.strip("-").upper()
    return Option(
        short="".join(short),
        long=long,
        metavar=metavar,
        help=text,
        takes=_takes(metavar, choices, long),
        choices=tuple(map(str, choices)),
        default=written.rstrip("]") or _default(parameter),
        variable=parameter.envvar or "",
        least=getattr(parameter.type, "min", None),
        group=getattr(parameter, "rich_help_panel", None) or "",
        is_repeatable=parameter.multiple,
    )


def _takes(metavar: str, choices: tuple[str, ...], long: str) -> Takes:
    if not metavar:
        return Takes.NOTHING
    if long == "--set":
        return Takes.PARAMETER
    if choices:
        return Takes.CHOICE
    if metavar in _FILES:
        return Takes.FILE
    return Takes.DIRECTORY if metavar == "DIR" else Takes.TEXT


def _default(parameter: Any) -> str:
    if parameter.is_flag or parameter.default in (None, ""):
        return ""
    value = parameter.default
    if isinstance(value, float):
        return f"{value:g}"
    return str(getattr(value, "value", value))
