"""Policies, parameters and realisations as options name them."""

from __future__ import annotations

import pytest

from dltools.cli.policies import allowed_plugins, parse_assignments, realisation_options
from dltools.errors import ConfigError
from dltools.plan.realisation.mode import Mode


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
def test_a_quantum_out_of_range_is_refused(quantum: float) -> None:
    with pytest.raises(ConfigError, match=r"^--quantum must be between 0.1 and 3600 seconds"):
        realisation_options("rotate", quantum)


@pytest.mark.parametrize(
    ("value", "names"), [(None, None), ("", []), ("mine", ["mine"]), ("a,,b", ["a", "b"])]
)
def test_plugins_are_allowed_by_the_environment(
    value: str | None, names: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv("DLTOOLS_PLUGINS", raising=False)
    else:
        monkeypatch.setenv("DLTOOLS_PLUGINS", value)
    assert allowed_plugins() == names
