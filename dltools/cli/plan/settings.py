"""The policy, parameters and targets that a request names, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools import inputs
from dltools.cli.policies import (
    allowed_plugins,
    assign,
    parse_assignments,
    realisation_options,
    warn_of_broken_plugins,
)
from dltools.errors import ConfigError
from dltools.observations.roles import Rules, parse_rule
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.signals.targets import read_targets_file

if TYPE_CHECKING:
    from dltools.cli.plan.request import Request
    from dltools.plan.policy.interface import Policy

Targets = list[tuple[str, dict[str, str]]]
"""Labels by patterns of container names."""


def load_policy(name: str) -> Policy:
    """Return a policy by name. Raises `ConfigError`."""
    policy = registry.get(name, allowed_plugins())
    warn_of_broken_plugins()
    return policy


def load_targets(file: Path | None) -> Targets:
    """Return what a targets file says. Raises `ConfigError`."""
    return [] if file is None else read_targets_file(inputs.read_text(file), str(file))


def make_planner(
    request: Request, policy: Policy, saved: Mapping[str, Any] | None, targets: Targets
) -> Planner:
    """Return a planner with the request's parameters, which continues from a saved state. Raises
    `ConfigError` and `DataError`."""
    given = _from_file(request.parameters_file) | parse_assignments(request.assignments)
    assigned = assign(policy, given)
    parameters = build(policy.parameters, assigned.policy)
    realisation = realisation_options(request.mode, request.quantum_s, assigned.queue)
    rules = Rules(tuple(map(parse_rule, request.roles)), request.is_only_labelled)
    return Planner(policy, parameters, realisation, saved, targets, rules)


def _from_file(file: Path | None) -> dict[str, object]:
    if file is None:
        return {}
    try:
        return tomllib.loads(inputs.read_text(file))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: {error}") from error
