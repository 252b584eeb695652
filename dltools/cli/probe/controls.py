"""What a person has chosen in the live table by keys: order, filter, place, page, help.

`press` takes a key and tells what became of it; `chosen` applies the choice to containers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dltools.cli.probe.observed_hosts import ObservedContainer
from dltools.cli.screen import Event

HELP = (
    "s       sort by the next column: name, CPU, memory, weight, role",
    "r       reverse the order",
    "/       filter by name: type a part of it, Enter keeps it, Esc shows all",
    "d       details: weight, quota, turn, role and what shows it; d goes back",
    "j k     scroll by a row, as the arrows; PgDn, PgUp by a page, g, G to the ends",
    "?       this help; any key leaves it",
    "q       quit",
)
"""The keys, a line each."""

_Key = Callable[[ObservedContainer], Any]


SORTS: Mapping[str, _Key] = {
    "name": lambda _: 0,
    "CPU": lambda one: -(one.rate("cpu_seconds") or 0.0),
    "memory": lambda one: -(one.row["memory_working_set_bytes"] or 0),
    "weight": lambda one: -(one.row.get("cpu_weight") or 0.0),
    "role": lambda one: str(one.row.get("role") or "~"),
}
"""The orders, by name; within one, containers are in order of host and name."""


@dataclass(slots=True)
class Controls:
    """The choice. `page_rows` is how many rows the last drawing had room for."""

    sort: str = "name"
    is_reversed: bool = False
    filter: str = ""
    is_typing: bool = False
    has_details: bool = False
    has_help: bool = False
    first: int = 0
    page_rows: int = 1
    _count: int = field(default=0)

    def press(self, key: str) -> Event | None:
        """Take a key: a character, or the name of one such as "up". Return QUIT, CHANGED where the
        table is to be drawn again, or None where the key does nothing."""
        if self.is_typing:
            return self._type(key)
        if self.has_help:
            self.has_help = False
            return Event.QUIT if key in "qQ" else Event.CHANGED
        if key in ("q", "Q"):
            return Event.QUIT
        before = self._choice()
        self._command(key)
        return Event.CHANGED if self._choice() != before else None

    def chosen(self, containers: Sequence[ObservedContainer]) -> list[ObservedContainer]:
        """Return the containers that pass the filter, in the chosen order."""
        wanted = self.filter.lower()
        kept = [one for one in containers if wanted in str(one.row["container_name"]).lower()]
        kept.sort(key=SORTS[self.sort])
        if self.is_reversed:
            kept.reverse()
        self._count = len(kept)
        self.first = max(0, min(self.first, len(kept) - self.page_rows))
        return kept

    @property
    def in_words(self) -> str:
        """What is not as at the beginning, "" for nothing."""
        words = []
        if self.sort != "name" or self.is_reversed:
            words.append(f"by {self.sort}{', reversed' if self.is_reversed else ''}")
        if self.is_typing or self.filter:
            words.append(f"filter: {self.filter}{'_' if self.is_typing else ''}")
        return "  ".join(words)

    def _choice(self) -> tuple[Any, ...]:
        flags = (self.is_reversed, self.is_typing, self.has_details, self.has_help)
        return (self.sort, self.filter, self.first, *flags)

    def _command(self, key: str) -> None:
        last = max(0, self._count - self.page_rows)
        steps = {"j": 1, "down": 1, "k": -1, "up": -1}
        steps |= {"pagedown": self.page_rows, "pageup": -self.page_rows}
        steps |= {"g": -self._count, "home": -self._count, "G": last, "end": last}
        if key in steps:
            self.first = max(0, min(last, self.first + steps[key]))
        elif key == "s":
            names = list(SORTS)
            self.sort = names[(names.index(self.sort) + 1) % len(names)]
        elif key == "r":
            self.is_reversed = not self.is_reversed
        elif key == "d":
            self.has_details = not self.has_details
        elif key == "?":
            self.has_help = True
        elif key == "/":
            self.is_typing = True
        elif key == "escape":
            self.filter = ""

    def _type(self, key: str) -> Event | None:
        """Take a key while a filter is typed."""
        if key in ("enter", "escape"):
            self.is_typing = False
            self.filter = "" if key == "escape" else self.filter
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1 and key.isprintable():
            self.filter += key
        else:
            return None
        return Event.CHANGED
