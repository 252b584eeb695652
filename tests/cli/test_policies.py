"""Policies, parameters and realisations as options name them, and the list of policies."""

import pytest

from dltools.cli.policies import (
    allowed_plugins,
    parse_assignments,
    print_policies,
    realisation_options,
)
from dltools.errors import ConfigError
from dltools.plan.realisation.options import Mode


def test_assignments_are_split_at_the_first_equals_sign() -> None:
    assert parse_assignments(["alpha = 0.05", "name=a=b"]) == {"alpha": "0.05", "name": "a=b"}


def test_an_assignment_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^--set alpha: not NAME=VALUE$"):
        parse_assignments(["alpha"])


def test_modes_are_known_by_name() -> None:
    assert realisation_options("auto").mode is None
    assert realisation_options("rotate", 5.0).mode is Mode.ROTATE
    with pytest.raises(ConfigError, match="unknown mode; known: auto, "):
        realisation_options("magic")


@pytest.mark.parametrize("quantum", [0.0, 0.09, 3601.0])
def test_a_quantum_out_of_range_is_refused(quantum) -> None:
    with pytest.raises(ConfigError, match=r"^--quantum must be between 0.1 and 3600 seconds"):
        realisation_options("rotate", quantum)


@pytest.mark.parametrize(
    ("value", "names"), [(None, None), ("", []), ("mine", ["mine"]), ("a,,b", ["a", "b"])]
)
def test_plugins_are_allowed_by_the_environment(value, names, monkeypatch) -> None:
    if value is None:
        monkeypatch.delenv("DLTOOLS_PLUGINS", raising=False)
    else:
        monkeypatch.setenv("DLTOOLS_PLUGINS", value)
    assert allowed_plugins() == names


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("DLTOOLS_PLUGINS", "")
    print_policies()
    return capsys.readouterr().out.splitlines()


def test_policies_are_listed_by_name(lines) -> None:
    names = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    assert {"flowcon", "noop", "tradl"} <= set(names)
    *policies, last = names
    assert policies == sorted(policies)
    assert last == "every policy"


@pytest.mark.parametrize(
    "begin",
    [
        "    alpha=0.03, 0 to 1: ",
        "    signed=true, true or false: ",
        '    gain="direct", direct or fixed: ',
        "    latest=1.2, 1 to 100: ",
        "    class NL, growing: ",
        "    class Q1 to Q20, queue 1 to queue 20: ",
    ],
)
def test_parameters_and_classes_stand_below_their_policy(lines, begin) -> None:
    assert any(line.startswith(begin) for line in lines)
