"""dl-sim: run a workload in virtual time."""

from dltools.cli.sim.command import app, main

__all__ = ["app", "main"]
