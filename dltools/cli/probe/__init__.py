"""dl-probe: measure the containers of Docker hosts."""

from dltools.cli.probe.command import app, main

__all__ = ["app", "main"]
