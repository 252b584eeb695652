"""What is probably a slip, in labels, targets and sizes: each is told once, and stops nothing."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from dltools import labels

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 1_000
"""Names among which one is looked for that was probably meant."""


class Doubts:
    """Watches the observations of a run for slips."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """`patterns` are the names that a targets file is for, as in a shell."""
        self._patterns = dict.fromkeys(patterns)
        self._names: set[str] = set()
        self._read: set[tuple[str, str]] = set()
        self._hosts: set[str] = set()

    def labels(self, table: pa.Table) -> list[str]:
        """Return what there is to say of the containers' labels that no table before had."""
        found: list[str] = []
        for name, text in self._new(table):
            found += [f"{name}: {doubt}" for doubt in labels.doubts(labels.read(text))]
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

    def _new(self, table: pa.Table) -> list[tuple[str, str]]:
        """Return the names and labels that come for the first time."""
        rows = table.select(["container_name", "labels"]).group_by(
            ["container_name", "labels"], use_threads=False
        )
        pairs = {
            (row["container_name"], row["labels"] or "")
            for row in rows.aggregate([]).to_pylist()
            if row["container_name"]
        }
        fresh = sorted(pairs - self._read)
        self._read |= pairs
        self._names.update(name for name, _ in fresh)
        return fresh

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
