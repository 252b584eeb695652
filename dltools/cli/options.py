"""Options that mean the same in several tools, and how their values are read."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from typer._click.exceptions import UsageError
from typer.core import TyperCommand

from dltools import __version__
from dltools.cli.exits import Exit, guarded, print_message
from dltools.cli.remarks import be_quiet
from dltools.notation.times import parse_duration

if TYPE_CHECKING:
    from dltools.engine.address import Address

_LONGEST_S = 1e9

CONTEXT = {"help_option_names": ["-h", "--help"]}

EXPERT = "Expert options"
"""The group of the options that few need."""


_Request = TypeVar("_Request")


def app(command: Callable[[_Request, typer.Context], None], request: type[_Request]) -> typer.Typer:
    """Return a tool made of one command. Its options are the fields of a request, a dataclass that
    declares them, and its help is the command's docstring."""
    hints = get_type_hints(request, include_extras=True)
    lists = {one.name for one in fields(request) if one.default is MISSING}  # type: ignore[arg-type]
    parameters = [
        Parameter(
            one.name,
            Parameter.KEYWORD_ONLY,
            default=None if one.default is MISSING else one.default,
            annotation=hints[one.name],
        )
        for one in fields(request)  # type: ignore[arg-type]
    ]

    @guarded
    @functools.wraps(command)
    def wrapper(context: typer.Context, **options: Any) -> None:
        given = {key: [] if key in lists and one is None else one for key, one in options.items()}
        command(request(**given), context)

    context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    wrapper.__signature__ = Signature([context, *parameters])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {one.name: one.annotation for one in (context, *parameters)}
    tool = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    tool.command(cls=_GroupedHelp)(wrapper)
    return tool


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Say what is wrong with a command line in one line, and exit."""
    try:
        yield
    except UsageError as error:
        name = os.path.basename(sys.argv[0])  # noqa: PTH119
        print_message(f"{error.format_message().rstrip('.')}; see {name} --help")
        raise typer.Exit(Exit.USAGE) from None


class _GroupedHelp(TyperCommand):
    """A command whose help shows options by group, without rich, which takes long to import, and
    whose errors are one line."""

    def make_context(self, *args: Any, **named: Any) -> Any:
        with _in_one_line():
            return super().make_context(*args, **named)

    def invoke(self, ctx: Any) -> Any:
        with _in_one_line():
            return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                usual = "Arguments" if one.param_type_name == "argument" else "Options"
                group = getattr(one, "rich_help_panel", None) or usual
                groups.setdefault(group, []).append(record)
        for group in sorted(groups, key=EXPERT.__eq__):
            with formatter.section(group):
                formatter.write_dl(groups[group])


def _version(value: bool) -> None:
    if value:
        print(f"{os.path.basename(sys.argv[0])} (dltools) {__version__}")  # noqa: PTH119
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Print progress messages on standard error.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "-q",
        "--quiet",
        callback=be_quiet,
        help="Print errors and warnings alone on standard error, and no remarks, such as why there "
        "was nothing to do.",
    ),
]
Input = Annotated[str, typer.Argument(metavar="[FILE]", help="Input file; - is standard input.")]

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="[FILE]...",
        help="Input files, pipes or directories, merged by time; - is standard input.",
    ),
]


def duration(text: str) -> float:
    """Read a duration: a number of seconds, or one with the unit s, m, h or d."""
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a duration such as 1.5s, 10m or 2h") from error
    if found > _LONGEST_S:
        raise typer.BadParameter(f"{text!r} is longer than thirty years")
    return found


Patience = Annotated[
    float,
    typer.Option(
        "--patience",
        parser=duration,
        metavar="TIME",
        envvar="DLTOOLS_PATIENCE",
        help="Wait this long for an engine that restarts.",
        rich_help_panel=EXPERT,
    ),
]
Realize = Annotated[
    str,
    typer.Option(
        "--realize",
        metavar="MODE",
        envvar="DLTOOLS_REALIZE",
        help="How allocations become settings: auto, quota, weight, priority, rotate or cores.",
    ),
]


def quantum_seconds(text: str) -> float | None:
    """Read the value of --quantum in seconds, None for auto."""
    return None if text == "auto" else duration(text)


Quantum = Annotated[
    float | None,
    typer.Option(
        "--quantum",
        parser=quantum_seconds,
        metavar="TIME",
        help="Mean length of a turn, with --realize rotate. auto: so long that changing over "
        "costs 2 %.",
        rich_help_panel=EXPERT,
    ),
]


Roles = Annotated[
    list[str],
    typer.Option(
        "--role",
        metavar="PATTERN=ROLE",
        help="Set the role of containers, whatever else shows it: training, server, interactive or "
        "other. PATTERN matches their names, or is label:KEY[=VALUE]. Repeatable: the last match "
        "counts.",
        rich_help_panel=EXPERT,
    ),
]

StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        envvar="DLTOOLS_STATE_DIR",
        help="Directory where dl-apply keeps its journal and turns, if not the default one.",
        rich_help_panel=EXPERT,
    ),
]


Hosts = Annotated[
    list[str],
    typer.Option(
        "--host",
        metavar="URL",
        help="Engine to use: unix:///PATH, tcp://HOST:PORT, ssh://HOST or, to change pods, "
        "kubernetes:NODE; on this machine also cri:///PATH, cgroup:/PATTERN, slurm: or kubepods:. "
        "Repeatable. See dltools-engines(7).",
    ),
]
Contexts = Annotated[
    list[str],
    typer.Option("--context", metavar="NAME", help="Docker context of an engine. Repeatable."),
]
Swarm = Annotated[
    bool, typer.Option("--swarm", help="Use every node of the Swarm that the engine manages.")
]


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines asked for, by address; none: the one that the docker command would use.

    `is_swarm`: all nodes of the Swarm that the one engine manages.
    """

    hosts: Sequence[str] = ()
    contexts: Sequence[str] = ()
    is_swarm: bool = False

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        if self.is_swarm and len(self.hosts) + len(self.contexts) > 1:
            raise typer.BadParameter("--swarm takes one --host or --context: its manager")

    @property
    def are_named(self) -> bool:
        """Whether any option names an engine."""
        return bool(self.hosts or self.contexts or self.is_swarm)

    @property
    def may_be_several(self) -> bool:
        """Whether more than one engine may be used."""
        return self.is_swarm or len(self.hosts) + len(self.contexts) > 1

    def addresses(self) -> list[Address]:
        """Return the addresses, each once. Raises `ConfigError` and `UnavailableError`."""
        from dltools.engine.docker.addresses import context_address, default_address
        from dltools.engine.registry import host_address

        found = [host_address(text) for text in self.hosts]
        found += [context_address(name) for name in self.contexts]
        found = found or [default_address()]
        if self.is_swarm:
            from dltools.engine.docker.engine import connect
            from dltools.engine.docker.swarm import node_addresses

            found = node_addresses(connect(found[0]), found[0])
        return list({one.url: one for one in reversed(found)}.values())[::-1]
