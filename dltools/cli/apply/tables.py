"""The tables that dl-apply prints: results, and changed containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dltools.cli.fitted_table import FittedTable
from dltools.cli.values_in_words import changes_in_words, gist, settings_in_words

if TYPE_CHECKING:
    from dltools.actions.plans import Result
    from dltools.apply.changed_containers import ChangedContainer
    from dltools.apply.history import Change
    from dltools.apply.migrate.migration import Migration
    from dltools.engine.runs import ApplyRun

_STATUS_COLOURS = {"applied": "green", "planned": "cyan", "failed": "red", "stale": "yellow"}


def results_table(
    results: Iterable[Result],
    reasons: Mapping[int, str] | None = None,
    time: str = "",
    *,
    has_header: bool = True,
) -> FittedTable:
    """Return a row per action: what became of it, the setting before and after, and what is wrong,
    else why, where `reasons` tell that by the action's id. A `time`, of one plan in a stream,
    stands beside the first; then there is room for usual names and settings."""
    headers = ("CONTAINER:name", "RESULT", "BEFORE", "AFTER", "NOTE:note")
    if time:
        headers = ("CONTAINER     :name", "RESULT   ", "BEFORE      ", "AFTER       ", "NOTE:note")
    table = FittedTable(bool(time) and "TIME:right", *headers, has_header=has_header)
    for number, result in enumerate(results):
        before, after = changes_in_words(result.before, result.after)
        table.add_row(
            "" if number else time,
            result.container_name,
            result.status.value,
            before,
            after,
            result.error or gist((reasons or {}).get(result.id, "")),
            style=_STATUS_COLOURS.get(result.status.value, ""),
        )
    return table


def migrations_table(rows: Iterable[Migration]) -> FittedTable:
    """Return a row per job that is on its way: from where to where, and where it is."""
    table = FittedTable("CONTAINER", "FROM", "TO", "STEP", "SINCE", "NOTE:note")
    for row in rows:
        note = "; ".join(filter(None, (row.whereabouts, row.why and f"it goes back: {row.why}")))
        table.add_row(
            row.container_name,
            row.source,
            row.target,
            row.step.value,
            _short(row.since),
            note,
            style="yellow",
        )
    return table


def changed_table(rows: Iterable[ChangedContainer], now: str) -> FittedTable:
    """Return a row per changed container: its settings before and now, since when, what ends that,
    and by which run. `now` is the time (RFC 3339)."""
    table = FittedTable("CONTAINER", "BEFORE", "NOW", "SINCE", "UNTIL", "BY")
    for row in rows:
        before, current = (
            ("", "gone") if row.current is None else changes_in_words(row.original, row.current)
        )
        run, ended = row.run, how_it_is(row.run)
        table.add_row(
            row.name,
            before if before.strip("-") else settings_in_words(row.original),
            current,
            _short(row.since, now),
            _until(row, now),
            f"{run.policy or '-'}, pid {run.pid}{ended}" if run.pid else "-",
            style="yellow" if ended else "",
        )
    return table


def history_table(changes: Iterable[Change], today: str) -> FittedTable:
    """Return a row per change: when, the settings before and after, what ended it and when, by
    which run, and why. `today` is the date (RFC 3339), which times of that day lack."""
    table = FittedTable("CONTAINER", "AT", "BEFORE", "AFTER", "ENDED", "BY", "WHY:note")
    for change in changes:
        before, after = changes_in_words(change.before, change.after)
        at, ended = _short(change.at, today), _short(change.ended, change.at)
        table.add_row(
            change.container_name,
            at,
            before,
            after,
            ", ".join(filter(None, (change.ended and ended, change.how))) or "-",
            f"{change.run.policy or '-'}, pid {change.run.pid}" if change.run.pid else "-",
            gist(change.reason),
        )
    return table


def how_it_is(run: ApplyRun) -> str:
    """Return " (ended)" or " (stopped)" of a run that does not go on."""
    return " (stopped)" if run.is_stopped else "" if run.is_alive else " (ended)"


def _until(container: ChangedContainer, now: str) -> str:
    """Return what ends a change: a time, the end of its run, --undo, or nothing."""
    if container.current in (None, container.original) or container.is_foreign:
        return "-"
    if container.ends_with.is_alive:
        return "run ends"
    if container.until > now:
        return _short(container.until, now)
    return "next run" if container.until or container.ends_with.pid else "--undo"


def _short(time: str, day: str = "") -> str:
    """Return a time (RFC 3339) as 11-24 13:05, as 13:05:07 if it is of the same day, - for none."""
    if not time:
        return "-"
    return time[11:19] if time[:10] == day[:10] else f"{time[5:10]} {time[11:16]}"
