"""What dl-report is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dltools.cli import destinations
from dltools.cli.formats import ReportFormat, choose_report_format
from dltools.cli.options import Messages, argument, flag, option
from dltools.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Request(Messages):
    """What to report, and how."""

    inputs: list[str] = argument(
        "[[NAME=]FILE]...",
        "Recordings, plans, results, or tables of dl-sim --jobs; - is standard input.",
        ["-"],
    )
    baseline: str = option(
        "--baseline NAME", "Baseline run for the ratios; by default noop, else the first.", ""
    )
    is_by_job: bool = flag("--jobs", "Print one row per job (the default for a single run).")
    by: str = option(
        "--by GROUP",
        "Print one row per GROUP, user or job (with all its containers): CPU and GPU hours, "
        "energy, hours waited, jobs finished and failed.",
        "",
    )
    prices: Path | None = option(
        "--prices FILE",
        "Print what jobs or users cost. FILE is TOML with cpu_hour, gpu_hour and kwh.",
    )
    kinds: list[str] = option(
        "--plot KIND",
        "Kind of picture: gantt, limits, progress or responses. "
        "Repeatable; by default all kinds that have data.",
        [],
    )
    output: Path | None = option("-o, --output FILE", "Write to FILE, completely or not at all.")
    asked_format: ReportFormat = option(
        "--format",
        "Output format. auto: the name of --output decides; else a table on a terminal, JSON "
        "Lines in a pipe.",
        ReportFormat.AUTO,
    )

    def __post_init__(self) -> None:
        """Raise `OutputError` for an impossible output, `ConfigError` for a kind of picture that is
        none, and for what nobody groups by."""
        from dltools.report.plots.figure import KINDS
        from dltools.report.result_rows import GROUPS

        for kind in self.kinds:
            if kind not in KINDS:
                raise ConfigError(f"--plot must be one of {', '.join(KINDS)}, not {kind}")
        choose_report_format(self.asked_format, self.output)
        files = [part for text in self.inputs for part in (text, text.partition("=")[2])]
        destinations.check(self.output, [*files, self.prices or ""])
        if self.by and self.by not in GROUPS:
            raise ConfigError(f"--by must be {' or '.join(GROUPS)}, not {self.by}")
        if self.by and self.is_by_job:
            raise ConfigError(f"--by {self.by} and --jobs exclude each other")

    @property
    def pictures(self) -> list[str]:
        """The kinds of picture to draw, in their order on a page."""
        from dltools.report.plots.figure import KINDS

        return [kind for kind in KINDS if kind in (self.kinds or KINDS)]

    @property
    def format(self) -> ReportFormat:
        """The format to write in."""
        return choose_report_format(self.asked_format, self.output)
