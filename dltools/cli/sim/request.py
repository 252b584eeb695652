"""What a dl-sim command line asks for, validated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from dltools.cli.formats import RowFormat
from dltools.errors import ConfigError

_DEFAULT_POLICIES = ("noop", "flowcon", "tradl", "slaq", "las", "srtf")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the jobs and hosts of a simulation come from.

    One of `recording`, `trace` ("KIND:FILE") and `generate` ("KIND:N"), else the workload `file`;
    "" is none. Hosts: `host_list`, else `nodes` hosts of `cpus` each. `spin` is None where the
    jobs say it.
    """

    file: str
    recording: str
    trace: str
    throughputs: Path | None
    generate: str
    mean_gap_s: float
    host_list: Path | None
    cpus: float
    nodes: int
    seed: int
    repeat: int
    spin: float | None

    def __post_init__(self) -> None:
        """Raise `BadParameter` or `ConfigError` for options that contradict each other."""
        others = [one for one in (self.recording, self.generate, self.trace) if one]
        if len(others) > 1:
            raise typer.BadParameter("--from, --generate and --trace exclude each other")
        if self.file != "-" and others:
            raise typer.BadParameter(
                f"{self.file}: --from, --generate and --trace replace FILE: give only one of them"
            )
        if not 1 <= self.repeat <= 100_000:
            raise ConfigError("--repeat must be between 1 and 100000")
        if self.host_list and not (self.generate or self.trace):
            raise typer.BadParameter("--hosts needs --generate or --trace")
        if self.throughputs and not self.trace.startswith("gavel:"):
            raise typer.BadParameter("--throughputs needs --trace gavel:FILE")
        if self.repeat > 1 and (self.recording or self.trace):
            raise typer.BadParameter(
                "--repeat does not go with --from or --trace: each repeat would be the same"
            )
        if self.spin is not None and not 0 <= self.spin <= 1:
            raise ConfigError("--spin must be between 0 and 1")

    @property
    def seeds(self) -> range:
        """The seeds, one for each repeat."""
        return range(self.seed, self.seed + self.repeat)


@dataclass(frozen=True, slots=True)
class Request:
    """What to simulate and what to print.

    `quantum_s` is the mean length of a turn, None for --quantum auto. `criterion` is that of
    --best, "" for a comparison of `policies`. `recording` is the file for the observations of one
    run. Two samples are `sample_interval_s` apart.
    """

    source: Source
    given_policies: tuple[str, ...]
    assignments: tuple[str, ...]
    mode: str
    quantum_s: float | None
    is_clairvoyant: bool
    criterion: str
    recording: Path | None
    sample_interval_s: float
    is_by_job: bool
    format: RowFormat

    def __post_init__(self) -> None:
        """Raise `BadParameter` or `ConfigError` for options that contradict each other."""
        if self.criterion and (
            self.given_policies
            or self.assignments
            or self.mode != "auto"
            or self.quantum_s
            or self.recording
            or self.is_by_job
        ):
            raise typer.BadParameter(
                "--best tries all policies and settings: it takes no --policy, --set, --realize, "
                "--quantum, --output or --jobs"
            )
        if not self.sample_interval_s >= 0.01:
            raise ConfigError("--interval must be at least 0.01 s")
        if self.recording and (len(self.policies) > 1 or self.source.repeat > 1):
            raise typer.BadParameter("--output needs a single --policy and no --repeat")

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies to compare, each once; the first is the baseline."""
        return tuple(dict.fromkeys(self.given_policies or _DEFAULT_POLICIES))
