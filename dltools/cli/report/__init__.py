"""dl-report: tables and pictures of runs."""

from dltools.cli.report.command import app, main

__all__ = ["app", "main"]
