"""Warnings of what is probably a mistake in labels, targets and sizes: each is given once."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from dltools import labels
from dltools.observations.table import is_one_of
from dltools.text import listed, suggestion

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_NAMES = 1_000
"""Names among which the one is looked for that was probably meant."""


class InputWarnings:
    """Watches the observations of a run; remembers what it has warned of."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """`patterns`: the container names that a targets file is for, as in a shell."""
        self._patterns = dict.fromkeys(patterns)
        self._names: set[str] = set()
        self._label_texts: set[tuple[str, str]] = set()
        self._hosts: set[str] = set()

    def of_labels(self, table: pa.Table) -> list[str]:
        """Return a line for each unknown label of containers that no earlier table had."""
        self._names.update(filter(None, table.column("container_name").unique().to_pylist()))
        lines: list[str] = []
        for text in table.column("labels").unique().to_pylist():
            if warnings := labels.unknown_labels(labels.parse_labels(text)):
                new = {(name, text) for name in _names_with(table, text)} - self._label_texts
                self._label_texts |= new
                names = listed(sorted(name for name, _ in new))
                lines += [f"{names}: {warning}" for warning in warnings if new]
        return lines

    def of_sizes(self, table: pa.Table) -> list[str]:
        """Return a line for each host whose number of CPUs is not above 0 and finite."""
        import pyarrow.compute as pc

        sizes = table.column("cpu_count")
        sound = pc.and_(pc.greater(sizes, 0), pc.less(sizes, float("inf")))
        rows = table.select(["host", "cpu_count"]).filter(pc.invert(sound)).to_pylist()
        counts = {row["host"]: f"{row['cpu_count']:g}" for row in reversed(rows)}
        new = sorted(counts.keys() - self._hosts)
        self._hosts.update(new)
        return [f"{host}: a cpu_count of {counts[host]} is ignored" for host in new]

    def of_targets(self, when: str = "") -> list[str]:
        """Return a line for each pattern that no container's name matches, once a container was
        seen. `when` ends the statement, such as " so far"."""
        if not self._names:
            return []
        lines = []
        for pattern in list(self._patterns):
            if not any(fnmatchcase(name, pattern) for name in self._names):
                meant = suggestion(pattern, sorted(self._names)[:_MOST_NAMES])
                lines.append(f"[{pattern}] matches no container{when}{meant}")
            del self._patterns[pattern]
        return lines


def _names_with(table: pa.Table, text: str) -> set[str]:
    """Return the names of the containers that have this text of labels."""
    rows = table.filter(is_one_of(table.column("labels"), (text,)))
    return set(filter(None, rows.column("container_name").unique().to_pylist()))
