"""Policies by name: the toolkit's own, and plug-ins by the entry-point group dltools.policies."""

from __future__ import annotations

from collections.abc import Collection

from dltools.errors import ConfigError
from dltools.policy.base import Policy
from dltools.policy.dqoes import DQOES
from dltools.policy.fair import FAIR
from dltools.policy.flowcon import FLOWCON
from dltools.policy.las import LAS
from dltools.policy.noop import NOOP
from dltools.policy.slaq import SLAQ
from dltools.policy.specon import SPECON
from dltools.policy.srtf import SRTF
from dltools.policy.tradl import TRADL

GROUP = "dltools.policies"

_OWN: tuple[Policy, ...] = (
    FLOWCON, TRADL, DQOES, SPECON, NOOP, FAIR, LAS, SLAQ, SRTF,
)  # fmt: skip


def policies(plugins: Collection[str] | None = None) -> dict[str, Policy]:
    """Return all policies by name.

    `plugins` names the entry points that may be loaded; None means all, empty none. The toolkit's
    own policies cannot be replaced. Raises `ConfigError` for a plug-in that does not load.
    """
    found = {policy.name: policy for policy in _OWN}
    if plugins is not None and not plugins:
        return found
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        if entry.name in found or (plugins is not None and entry.name not in plugins):
            continue
        try:
            policy = entry.load()
        except Exception as error:
            raise ConfigError(f"plug-in {entry.name} ({entry.value}): {error}") from error
        if not isinstance(policy, Policy):
            raise ConfigError(f"plug-in {entry.name} ({entry.value}) is not a policy")
        found[entry.name] = policy
    return found


def get(name: str, plugins: Collection[str] | None = None) -> Policy:
    """Return a policy by name. Raises `ConfigError` that lists the known ones."""
    known = policies(plugins)
    if name not in known:
        raise ConfigError(f"unknown policy {name!r}; known: {', '.join(sorted(known))}")
    return known[name]
