"""Finds policies by name: those of dltools, and plug-ins of the entry-point group
dltools.policies."""

from __future__ import annotations

import functools
from collections.abc import Collection

from dltools.errors import ConfigError
from dltools.plan.policy.baselines import FAIR, NOOP
from dltools.plan.policy.dqoes import DQOES
from dltools.plan.policy.flowcon import FLOWCON
from dltools.plan.policy.interface import Policy
from dltools.plan.policy.las import LAS
from dltools.plan.policy.slaq import SLAQ
from dltools.plan.policy.specon import SPECON
from dltools.plan.policy.srtf import SRTF
from dltools.plan.policy.tradl import TRADL

GROUP = "dltools.policies"

_OWN: tuple[Policy, ...] = (FLOWCON, TRADL, DQOES, SPECON, NOOP, FAIR, LAS, SLAQ, SRTF)


def policies(plugins: Collection[str] | None = None) -> dict[str, Policy]:
    """Return all policies by name.

    `plugins` names the entry points that may be loaded; None means all, empty none. The toolkit's
    own policies cannot be replaced. A plug-in that does not load is left out: see `faults`.
    """
    own = {policy.name: policy for policy in _OWN}
    return own | _loaded(None if plugins is None else frozenset(plugins))[0]


def faults(plugins: Collection[str] | None = None) -> dict[str, str]:
    """Return the error of each plug-in that does not load, by name."""
    return _loaded(None if plugins is None else frozenset(plugins))[1]


def get(name: str, plugins: Collection[str] | None = None) -> Policy:
    """Return a policy by name. Raises `ConfigError` with the error of a plug-in that does not load,
    or with the names of all policies."""
    by_name = policies(plugins)
    if name not in by_name:
        wrong = faults(plugins).get(name)
        raise ConfigError(wrong or f"unknown policy {name!r}; known: {', '.join(sorted(by_name))}")
    return by_name[name]


@functools.cache
def _loaded(plugins: frozenset[str] | None) -> tuple[dict[str, Policy], dict[str, str]]:
    """Return the plug-ins that load, and the errors of the others, by name."""
    loaded: dict[str, Policy] = {}
    wrong: dict[str, str] = {}
    if plugins is not None and not plugins:
        return loaded, wrong
    from importlib.metadata import entry_points

    own = {policy.name for policy in _OWN}
    for entry in entry_points(group=GROUP):
        if entry.name in own or (plugins is not None and entry.name not in plugins):
            continue
        title = f"plug-in {entry.name} ({entry.value})"
        try:
            policy = entry.load()
            if not isinstance(policy, Policy):
                raise TypeError("not a policy")
        except (Exception, SystemExit) as error:
            wrong[entry.name] = f"{title} does not load: {type(error).__name__}: {error}"
            continue
        loaded[entry.name] = policy
    return loaded, wrong
