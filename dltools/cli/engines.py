"""The engines that --host, --context and --swarm name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from dltools.engine.docker.addresses import Address, context_address, default_address, host_address

Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="URL",
        help="Engine to use, once for each: unix:///PATH, tcp://HOST:PORT or ssh://HOST.",
    ),
]
Contexts = Annotated[
    list[str] | None,
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
        found = [host_address(text) for text in self.hosts]
        found += [context_address(name) for name in self.contexts]
        found = found or [default_address()]
        if self.is_swarm:
            from dltools.engine.docker.engine import connect
            from dltools.engine.docker.swarm import node_addresses

            found = node_addresses(connect(found[0]), found[0])
        return list({one.url: one for one in reversed(found)}.values())[::-1]
