"""dl-probe: measure the containers of one Docker host."""

from dltools.cli.probe.command import app, main

__all__ = ["app", "main"]
