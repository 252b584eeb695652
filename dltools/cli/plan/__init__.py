"""dl-plan: turn observations into a decision."""

from dltools.cli.plan.command import app, main

__all__ = ["app", "main"]
