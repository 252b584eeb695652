"""dl-apply: act on containers, verify, undo."""

from dltools.cli.apply.command import app, main

__all__ = ["app", "main"]
