"""The table that dl-plan prints: a decision for each container.

It stands alone because a plan in a pipe needs no rich.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dltools.cli.fitted_table import FittedTable
from dltools.cli.values_in_words import changes_in_words, settings_in_words
from dltools.notation.limits import only
from dltools.notation.times import format_seconds

if TYPE_CHECKING:
    from dltools.actions.settings import Settings
    from dltools.plan.outcome.decisions import JobDecision

_WEIGHT = "weight "


def decisions_table(decisions: Iterable[JobDecision], *, wide: bool) -> FittedTable:
    """Return a row per container: its class, share, settings now and then, and what says most of
    why (the records of the plan have all of it); a wide table adds signal, prediction, and when the
    job is forecast to end. Users have a column where any is known."""
    decisions = list(decisions)
    has_users = any(decision.user for decision in decisions)
    more = ("SIGNAL", "PREDICTION", "ENDS IN:right") if wide else (False,) * 3
    headers = ("CONTAINER", has_users and "USER", "CLASS", "SHARE:right", "SETTINGS")
    table = FittedTable(*headers, *more, "WHY:note", short_notes=True)
    for decision in decisions:
        settings = decision.setting or {}
        share = decision.allocation.share
        table.add_row(
            decision.name,
            decision.user or "-",
            decision.job_class,
            "-" if share is None else f"{share:.0%}",
            _settings(decision.present, settings),
            decision.allocation.signal or "-",
            decision.allocation.prediction or "-",
            "-" if decision.ends_s is None else format_seconds(decision.ends_s),
            decision.in_short,
        )
    return table


def _settings(present: Settings, wanted: Settings) -> str:
    """Return the settings in force, or what is to change, behind an arrow what it becomes: weight
    1024 -> 10."""
    now, then = changes_in_words(only(present, wanted), wanted)
    if not wanted or now == then:
        return settings_in_words(present)
    is_weight = now.startswith(_WEIGHT) and "," not in f"{now}{then}"
    return f"{now} -> {then.removeprefix(_WEIGHT) if is_weight else then}"
