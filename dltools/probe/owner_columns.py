"""What the owners of containers asked for, as columns: what these had before dl-apply came."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from dltools.engine.interface import Engine
from dltools.engine.owner_limits import JournaledLimits, OwnerLimits
from dltools.engine.scales import asked_weight
from dltools.notation.cpu_lists import parse_cpus
from dltools.observations.table import Row
from dltools.probe.inventory import Watched


class Owners:
    """Fills the columns of owners on one host.

    dl-apply writes its journal before it changes a container, and takes an entry out after it has
    put the container back. So the journal is read before the limits in force and after them, and
    counts where either time it names the container.
    """

    def __init__(self, state_directories: Sequence[Path], engine: Engine) -> None:
        """Nothing is read yet. dl-apply keeps its journal in the state directories."""
        self._journal = JournaledLimits(state_directories, engine.recorded)
        self._cpus = engine.cpus
        self._before: Mapping[str, OwnerLimits | str] = {}

    def begin(self, container_ids: Collection[str]) -> None:
        """Read the journal: the limits in force are read next."""
        self._before = self._journal.read(container_ids)

    def add(
        self, rows: Sequence[tuple[Watched, Row]], host_row: Row, usable_list: str | None
    ) -> None:
        """Add the columns to rows of containers that have the limits in force. `usable_list`: the
        CPUs that containers may have."""
        ids = [watched.container.id for watched, _ in rows]
        journaled = {**self._before, **self._journal.read(ids)}
        for watched, row in rows:
            found = journaled.get(watched.container.id)
            if isinstance(found, str):
                row["gap"] = "; ".join(filter(None, (row["gap"], f"its owner's limits: {found}")))
            elif limits := found or self._in_force(watched, row, host_row, usable_list):
                row["owner_cpu_limit_cores"] = limits.cpus
                row["owner_cpu_weight"] = limits.weight
                row["owner_cpuset"] = limits.cpuset

    def _in_force(
        self, watched: Watched, row: Row, host_row: Row, usable_list: str | None
    ) -> OwnerLimits | None:
        """Return the limits in force of a container that dl-apply has not changed, None where they
        are unknown."""
        quota, weight, cpus = row["cpu_limit_cores"], row["cpu_weight"], host_row["cpu_count"]
        if weight is None or quota is None:
            return None
        found = watched.cgroup.directory("cpu") if watched.cgroup else None
        asked = asked_weight(
            watched.container.recorded.weight,
            weight,
            is_v2=found is not None and found.version == 2,
        )
        is_bounded = cpus is None or quota < cpus
        return OwnerLimits(
            quota if is_bounded else None,
            asked,
            self._cpu_list(watched, row["cpuset"], usable_list),
        )

    def _cpu_list(
        self, watched: Watched, cpuset: str | None, usable_list: str | None
    ) -> str | None:
        """Return a container's CPU list, None where it is that of the cgroup above, or all CPUs."""
        if cpuset in (None, usable_list) or len(parse_cpus(cpuset or "")) >= self._cpus:
            return None
        above = watched.cgroup.ancestors("cpuset") if watched.cgroup else iter(())
        return None if cpuset == next((one.cpuset() for one in above), None) else cpuset
