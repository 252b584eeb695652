"""What dl-sim is asked for: its options, their defaults, and which contradict each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from dltools.cli import destinations, options
from dltools.cli.formats import RowFormat
from dltools.cli.options import Messages, Realisation, expert_flag, expert_option, flag, option
from dltools.errors import ConfigError

_SIMPLEST = ("noop", "fair")
_DEFAULT_POLICIES = ("noop", "flowcon", "tradl", "slaq", "las", "srtf")


@dataclass(frozen=True, kw_only=True)
class Request(Messages, Realisation):
    """What to simulate and what to print.

    The jobs and hosts come from `from_recording` or `generate` ("KIND:N"), else from the workload
    `file`; "" is none.
    """

    file: str = options.input_argument()
    given_policies: list[str] = option(
        "-p, --policy NAME",
        "Scheduling policy. Repeatable; the first one is the baseline of the ratios. By "
        "default noop, flowcon, tradl, slaq, las and srtf.",
        [],
    )
    assignments: list[str] = option(
        "--set NAME=VALUE", "Set a parameter of the policies that have it. Repeatable.", []
    )
    is_clairvoyant: bool = expert_flag(
        "--clairvoyant", "Tell the policies how many epochs each job will train."
    )
    from_recording: str = option(
        "--from RECORDING",
        "Simulate the containers of RECORDING instead of FILE: a file, a directory, or - for "
        "standard input.",
        "",
    )
    generate: str = option(
        "--generate KIND:N",
        "Generate N trainings instead of reading FILE; KIND is how they arrive: fixed, "
        "random, poisson or burst.",
        "",
    )
    mean_gap_s: float = option(
        "--gap TIME", "Mean time between two arrivals, for --generate.", "30s"
    )
    cpus: float = option("--cpus N", "CPUs of each host, for --generate.", 2.0)
    nodes: int = option("--nodes N", "Number of hosts, for --generate.", 1)
    seed: int = option("--seed N", "First random seed.", 0)
    repeat: int = option("--repeat N", "Number of seeds to average over.", 1)
    spin: float | None = expert_option(
        "--spin FRACTION",
        "How much jobs lose to contention: 0 (waiting threads sleep) to 1 (they spin). By default "
        "each job's own value.",
    )
    criterion: str = option(
        "--best CRITERION",
        "Compare all policies, best first by mean_completion, makespan, time_to_target or "
        "satisfied.",
        "",
    )
    recording: Path | None = option(
        "-o, --output FILE",
        "Write what dl-probe would have recorded of the run of one policy. The name of FILE "
        "chooses the format; by default Parquet.",
    )
    sample_interval_s: float = expert_option(
        "-i, --interval TIME",
        "Time between two samples, also in --output: how soon policies see what jobs report.",
        "2s",
    )
    is_by_job: bool = flag("--jobs", "Print one row per job instead of one per policy.")
    format: RowFormat = option(
        "--format", "Output format. auto: a table on a terminal, else JSON Lines.", RowFormat.AUTO
    )

    def __post_init__(self) -> None:
        """Raise `BadParameter` or `ConfigError` for options that contradict each other."""
        if self.from_recording and self.generate:
            raise typer.BadParameter("--from and --generate exclude each other")
        if self.file != "-" and (self.from_recording or self.generate):
            raise typer.BadParameter(f"{self.file}: --from and --generate replace FILE")
        if not self.generate and (self.cpus, self.nodes, self.mean_gap_s) != (2.0, 1, 30.0):
            raise typer.BadParameter("--cpus, --nodes and --gap need --generate")
        if not 1 <= self.repeat <= 100_000:
            raise ConfigError("--repeat must be between 1 and 100000")
        if self.repeat > 1 and self.from_recording:
            raise typer.BadParameter("--repeat does not go with --from: each would be the same")
        if self.spin is not None and not 0 <= self.spin <= 1:
            raise ConfigError("--spin must be between 0 and 1")
        if self.criterion and (self.given_policies or self.recording or self.is_by_job):
            raise typer.BadParameter("--best takes all policies: no --policy, --output or --jobs")
        if not self.sample_interval_s >= 0.01:
            raise ConfigError("--interval must be at least 0.01 s")
        if self.recording and (len(self.policies) > 1 or self.repeat > 1):
            raise typer.BadParameter("--output needs a single --policy and no --repeat")
        destinations.check(self.recording, (self.file, self.from_recording))

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies to compare, each once; the first is the baseline."""
        if not self.criterion:
            return tuple(dict.fromkeys(self.given_policies or _DEFAULT_POLICIES))
        from dltools.plan.policy import registry

        return tuple(dict.fromkeys((*_SIMPLEST, *registry.policies([]))))

    @property
    def seeds(self) -> range:
        """The seeds, one for each repeat."""
        return range(self.seed, self.seed + self.repeat)
