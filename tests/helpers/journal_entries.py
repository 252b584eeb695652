"""Journal entries of the fake engine's container, and of others."""

from typing import Any

from helpers.fake_engine import HOST, ID, NAME

from dltools.engine.journal import Entry
from dltools.engine.runs import UNKNOWN_RUN


def journal_entry(container_id: str = ID, name: str = NAME, **changes: Any) -> Entry:
    """Return an entry, without settings unless they are given."""
    values: dict[str, Any] = {
        "engine": "FAKE",
        "host": HOST,
        "fields": {},
        "settings": {},
        "kernel": {},
        "since": "2026-01-31T12:00:00Z",
        "run": UNKNOWN_RUN,
    }
    return Entry(container_id=container_id, container_name=name, **values | changes)
