"""What is probably a slip, in labels, targets and sizes: each is told once, and stops nothing."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from dltools import labels
from dltools.observations.table import is_one_of

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 1_000
"""Names among which one is looked for that was probably meant."""


class InputChecks:
    """Watches the observations of a run for slips."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """`patterns` are the names that a targets file is for, as in a shell."""
        self._patterns = dict.fromkeys(patterns)
        self._names: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._hosts: set[str] = set()

    def labels(self, table: pa.Table) -> list[str]:
        """Return what there is to say of the containers' labels that no table before had."""
        self._names.update(filter(None, table.column("container_name").unique().to_pylist()))
        found: list[str] = []
        for text in table.column("labels").unique().to_pylist():
            if doubts := labels.doubts(labels.read(text)):
                fresh = {(name, text) for name in _of(table, text)} - self._told
                self._told |= fresh
                found += [f"{name}: {doubt}" for name, _ in sorted(fresh) for doubt in doubts]
        return found

    def sizes(self, table: pa.Table) -> list[str]:
        """Return what there is to say of hosts that say to have no, less or endless CPUs."""
        import pyarrow.compute as pc

        sizes = table.column("cpu_count")
        sound = pc.and_(pc.greater(sizes, 0), pc.less(sizes, float("inf")))
        rows = table.select(["host", "cpu_count"]).filter(pc.invert(sound)).to_pylist()
        found = {row["host"]: f"{row['cpu_count']:g}" for row in reversed(rows)}
        fresh = sorted(found.keys() - self._hosts)
        self._hosts.update(fresh)
        return [f"{host}: a cpu_count of {found[host]} is passed over" for host in fresh]

    def targets(self, when: str = "") -> list[str]:
        """Return what there is to say of names that no container has had, each once: `when` they
        were looked for. Before any container was seen there is nothing to say."""
        if not self._names:
            return []
        found = []
        for pattern in list(self._patterns):
            if not any(fnmatchcase(name, pattern) for name in self._names):
                near = labels.meant(pattern, sorted(self._names)[:_MOST])
                found.append(f"[{pattern}] matches no container{when}{near}")
            del self._patterns[pattern]
        return found


def _of(table: pa.Table, text: str) -> set[str]:
    """Return the names of the containers that bear these labels."""
    rows = table.filter(is_one_of(table.column("labels"), (text,)))
    return set(filter(None, rows.column("container_name").unique().to_pylist()))
