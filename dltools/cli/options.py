"""How tools declare their options, those that several have, and how their values are read."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from dltools import __version__
from dltools.cli.remarks import be_quiet
from dltools.notation.times import parse_duration

if TYPE_CHECKING:
    from dltools.engine.address import Address

_LONGEST_S = 1e9

CONTEXT = {"help_option_names": ["-h", "--help"]}

EXPERT = "Expert options"
"""The group of the options that few need."""


_Request = TypeVar("_Request")


def argument(metavar: str, help_: str, default: Any) -> Any:
    """Declare a field of a request that is an argument; a list is the default of one that
    repeats."""
    return _field(typer.Argument(metavar=metavar, help=help_), default)


def option(
    names: str, help_: str, default: Any = None, *, has_variable: bool = False, **rules: Any
) -> Any:
    """Declare a field of a request that is an option; a list is the default of one that repeats.

    `names` are as the help shows them: "-i, --interval TIME". A TIME is a duration in seconds.
    `has_variable`: the environment may give it, as DLTOOLS_INTERVAL. `rules` are typer's.
    """
    words = names.replace(",", "").split()
    flags = [word for word in words if word.startswith("-")]
    metavar = words[-1] if words[-1] not in flags else None
    if metavar == "TIME":
        rules.setdefault("parser", duration)
    if has_variable:
        rules["envvar"] = f"DLTOOLS_{flags[-1].strip('-').replace('-', '_').upper()}"
    return _field(typer.Option(*flags, metavar=metavar, help=help_, **rules), default)


flag = partial(option, default=False)
expert_option = partial(option, rich_help_panel=EXPERT)
expert_flag = partial(flag, rich_help_panel=EXPERT)


def _field(declared: Any, default: Any) -> Any:
    """Return a field whose metadata are what typer is told."""
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata={"declared": declared, "default": None})
    is_text = declared.parser is not None and default is not None
    value = declared.parser(default) if is_text else default
    return field(default=value, metadata={"declared": declared, "default": default})


def app(command: Callable[[_Request], None], request: type[_Request]) -> typer.Typer:
    """Return a tool made of one command. Its options are the fields of a request, a dataclass that
    declares them, those of its bases last; its help is the command's docstring."""
    parameters = _parameters(request)
    lists = {one.name for one in fields(request) if one.default is MISSING}  # type: ignore[arg-type]

    @functools.wraps(command)
    def wrapper(**options: Any) -> None:
        given = {key: one for key, one in options.items() if one or key not in lists}
        command(request(**given))

    wrapper.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    tool = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    tool.command(cls=_GroupedHelp)(wrapper)
    return tool


def _parameters(request: type[Any]) -> list[Parameter]:
    """Return the options that a request declares, those of its bases last."""
    hints = get_type_hints(request)
    own = request.__annotations__
    return [
        Parameter(
            entry.name,
            Parameter.KEYWORD_ONLY,
            default=entry.metadata["default"],
            annotation=Annotated[hints[entry.name], entry.metadata["declared"]],
        )
        for entry in sorted(fields(request), key=lambda entry: entry.name not in own)
    ]


def duration(text: str) -> float:
    """Read a duration: a number of seconds, or one with the unit s, m, h or d."""
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a duration such as 1.5s, 10m or 2h") from error
    if seconds > _LONGEST_S:
        raise typer.BadParameter(f"{text!r} is longer than thirty years")
    return seconds


def command(text: str) -> list[str]:
    """Read a command that is run without a shell: the path of a program, or words as a shell would
    split them. Raises `BadParameter` where there is no such program."""
    if os.access(text, os.X_OK) and not Path(text).is_dir():
        return [text]
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r}: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise typer.BadParameter(f"{text!r}: no such program; it is run without a shell")
    return words


class _GroupedHelp(TyperCommand):
    """A command whose help shows options by group, without rich, which takes long to import."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                usual = "Arguments" if param.param_type_name == "argument" else "Options"
                group = getattr(param, "rich_help_panel", None) or usual
                groups.setdefault(group, []).append(record)
        for group in sorted(groups, key=EXPERT.__eq__):
            with formatter.section(group):
                formatter.write_dl(groups[group])


def _version(value: bool) -> None:
    if value:
        print(f"{os.path.basename(sys.argv[0])} (dltools) {__version__}")  # noqa: PTH119
        raise typer.Exit


def input_argument() -> Any:
    """Declare the input file."""
    return argument("[FILE]", "Input file; - is standard input.", "-")


def roles_option() -> Any:
    """Declare the roles of containers."""
    return expert_option(
        "--role PATTERN=ROLE",
        "Set the role of containers, overriding all other evidence: training, server, interactive "
        "or other. PATTERN matches their names, or is label:KEY[=VALUE]. Repeatable: the last "
        "match counts.",
        [],
    )


def quantum_seconds(text: str) -> float | None:
    """Read the value of --quantum in seconds, None for auto."""
    return None if text == "auto" else duration(text)


@dataclass(frozen=True, kw_only=True)
class Messages:
    """What is said on standard error."""

    quiet: bool = flag(
        "-q, --quiet",
        "Print only errors and warnings on standard error, and no remarks, such as why there "
        "was nothing to do.",
        callback=be_quiet,
    )
    version: bool = flag(
        "--version", "Print the version and exit.", callback=_version, is_eager=True
    )


@dataclass(frozen=True, kw_only=True)
class MoreMessages(Messages):
    """What is said on standard error, with progress where it is asked for."""

    is_verbose: bool = flag("-v, --verbose", "Print progress messages on standard error.")


@dataclass(frozen=True, kw_only=True)
class Realisation:
    """How allocations become settings. `quantum_s` is None for auto."""

    mode: str = option(
        "--realize MODE",
        "How allocations become settings: auto, quota, weight, priority or rotate.",
        "auto",
        has_variable=True,
    )
    quantum_s: float | None = expert_option(
        "--quantum TIME",
        "Mean length of a turn, with --realize rotate. auto: long enough that switching costs 2 %.",
        "auto",
        parser=quantum_seconds,
    )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The engines to use, how long to wait for one, and where dl-apply keeps its state."""

    hosts: list[str] = option(
        "--host URL",
        "Engine to use: unix:///PATH, tcp://HOST:PORT or ssh://HOST; on this machine also "
        "cri:///PATH, cgroup:/PATTERN or slurm:. Repeatable. See dltools-engines(7).",
        [],
    )
    contexts: list[str] = option("--context NAME", "Docker context of the engine. Repeatable.", [])
    is_swarm: bool = flag("--swarm", "Use every node of the Swarm that the engine manages.")
    patience_s: float = expert_option(
        "--patience TIME", "Wait this long for an engine that restarts.", "60s", has_variable=True
    )
    state_directory: Path | None = expert_option(
        "--state-dir DIR",
        "Directory where dl-apply keeps its journal and turns, instead of the default one.",
        has_variable=True,
    )

    def __post_init__(self) -> None:
        """Raise `BadParameter` for options that contradict each other."""
        if self.is_swarm and len(self.hosts) + len(self.contexts) > 1:
            raise typer.BadParameter("--swarm takes one --host or --context: its manager")

    @property
    def names_engines(self) -> bool:
        """Whether any option names an engine; else it is the one that docker would use."""
        return bool(self.hosts or self.contexts or self.is_swarm)

    def addresses(self) -> list[Address]:
        """Return the addresses, each once. Raises `ConfigError` and `UnavailableError`."""
        from dltools.engine.docker.addresses import context_address, default_address
        from dltools.engine.registry import host_address

        addresses = [host_address(text) for text in self.hosts]
        addresses += [context_address(name) for name in self.contexts]
        addresses = addresses or [default_address()]
        if self.is_swarm:
            from dltools.engine.docker.engine import connect
            from dltools.engine.docker.swarm import node_addresses

            addresses = node_addresses(connect(addresses[0]), addresses[0])
        return list({address.url: address for address in reversed(addresses)}.values())[::-1]
