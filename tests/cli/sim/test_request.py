"""What dl-sim is asked for: options that contradict each other are refused."""

from pathlib import Path
from typing import Any

import pytest
import typer

from dltools.cli.sim.request import Request
from dltools.errors import ConfigError


def request(**changes: Any) -> Request:
    return Request(**{"quantum_s": None, "sample_interval_s": 5.0, "nodes": 1, **changes})


def test_each_repeat_has_a_seed() -> None:
    assert list(request(seed=7, repeat=3, generate="burst:2").seeds) == [7, 8, 9]


def test_policies_are_compared_once_each_with_the_first() -> None:
    assert request().policies[0] == "noop"
    assert request(given_policies=("las", "noop", "las")).policies == ("las", "noop")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"from_recording": "x", "generate": "burst:2"}, "exclude each other"),
        ({"file": "x", "generate": "burst:2"}, "x: --from and --generate replace FILE"),
        ({"file": "x", "cpus": 4.0}, "--cpus, --nodes and --gap need --generate"),
        ({"from_recording": "x", "nodes": 2}, "--cpus, --nodes and --gap need --generate"),
        ({"file": "x", "mean_gap_s": 5.0}, "--cpus, --nodes and --gap need --generate"),
        ({"repeat": 2, "from_recording": "x"}, "each would be the same"),
    ],
)
def test_sources_that_contradict_each_other_are_wrong_usage(changes, fault) -> None:
    with pytest.raises(typer.BadParameter, match=fault):
        request(**changes)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"repeat": 0}, "--repeat must be between 1 and 100000"),
        ({"repeat": 100_001}, "--repeat must be between 1 and 100000"),
        ({"spin": 1.1}, "--spin must be between 0 and 1"),
    ],
)
def test_a_number_out_of_range_is_refused(changes, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        request(**changes)


@pytest.mark.parametrize(
    "changes", [{"given_policies": ("las",)}, {"recording": Path("x")}, {"is_by_job": True}]
)
def test_a_comparison_of_all_policies_names_none(changes) -> None:
    with pytest.raises(typer.BadParameter, match="--best takes all policies"):
        request(criterion="makespan", **changes)


def test_a_recording_is_of_a_single_run() -> None:
    with pytest.raises(typer.BadParameter, match="--output needs a single --policy"):
        request(recording=Path("x"))
    with pytest.raises(typer.BadParameter, match="no --repeat"):
        request(recording=Path("x"), given_policies=("las",), repeat=2)
    with pytest.raises(ConfigError, match=r"--interval must be at least 0.01 s"):
        request(recording=Path("x"), given_policies=("las",), sample_interval_s=0.0)
