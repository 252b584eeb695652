"""All hosts that are read from observations: what each must know of the others, and of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from dltools.labels import parse_labels
from dltools.observations.roles import NO_RULES, Rules
from dltools.observations.samples_by_host import rows_after
from dltools.observations.schema import SAMPLED
from dltools.observations.table import hosts_of
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.samples.recorded_host import RecordedHost
from dltools.plan.signals.container_history import ContainerHistory

if TYPE_CHECKING:
    import pyarrow as pa

_SET_BACK_US = 60_000_000
"""A step of a clock back that counts (microseconds, ours): a smaller one is soon made up for."""

_parsed = lru_cache(maxsize=1 << 12)(parse_labels)


@dataclass(frozen=True, slots=True)
class UserRules:
    """What the user says of containers."""

    labels: Sequence[tuple[str, Mapping[str, str]]] = ()
    """Labels for containers whose names match a pattern (as in a shell) and that do not have
    them."""

    rules: Rules = NO_RULES
    """The rules about roles."""

    def introduce(self, container: ContainerHistory, text: str | None) -> None:
        """Give a container its labels and what the user says of its role. Labels that are given to
        its name come first; its own, whose `text` this is, override them."""
        own = _parsed(text)
        given: dict[str, str] = {}
        for pattern, labels in self.labels:
            if fnmatchcase(container.name, pattern):
                given |= labels
        container.standing.by_option = self.rules.said(container.name, own)
        container.standing.is_left_alone = self.rules.leave_out(own)
        container.label({**given, **own} if given else own)
        container.judge()


@dataclass(slots=True)
class RecordedHosts:
    """All hosts."""

    by_name: dict[str, RecordedHost] = field(default_factory=dict)
    """The hosts, by name."""

    jobs: dict[str, frozenset[str]] = field(init=False, default_factory=dict)
    """The jobs of several containers of which a host runs some, by host."""

    def __post_init__(self) -> None:
        """Note the jobs of hosts that an earlier plan has known."""
        for name, host in self.by_name.items():
            memberships = (c.membership for c in host.history.containers.values())
            if jobs := frozenset(membership.job for membership in memberships if membership.job):
                self.jobs[name] = jobs
        self._spread_jobs()

    def histories(self) -> list[HostHistory]:
        """Return the hosts' histories, by name."""
        return [host.history for _, host in sorted(self.by_name.items())]

    def recorded(self, name: str) -> HostHistory:
        """Return a host's history, brought up to its newest sample."""
        self.by_name[name].record()
        return self.by_name[name].history

    def note_jobs(self, host: RecordedHost) -> None:
        """Tell the other hosts which jobs one has containers of, at its newest sample."""
        if host.jobs != self.jobs.get(host.history.name, frozenset()):
            self.jobs[host.history.name] = host.jobs
            self._spread_jobs()

    def _spread_jobs(self) -> None:
        """Tell each host which jobs the others have containers of."""
        for other in self.jobs:
            elsewhere = (jobs for name, jobs in self.jobs.items() if name != other)
            self.by_name[other].history.jobs_elsewhere = frozenset().union(*elsewhere)

    @property
    def sampled_at(self) -> dict[str, int]:
        """The time of each host's newest sample (microseconds since the epoch)."""
        return {
            host.name: host.sampled_at for host in self.histories() if host.sampled_at is not None
        }

    def set_back(self, table: pa.Table) -> list[str]:
        """Return the hosts whose clocks were set back: all of their samples in a table are much
        older than their newest one.

        Samples that are not later than a host's newest one are old ones, which count no more. After
        a step back all are, until the clock has come as far again.
        """
        bounds = {host: time - _SET_BACK_US - 1 for host, time in self.sampled_at.items()}
        table = table.select(["time", "host", "kind"])
        sampled = bounds.keys() & hosts_of(table, SAMPLED)
        return sorted(sampled - hosts_of(rows_after(table, bounds), SAMPLED))
