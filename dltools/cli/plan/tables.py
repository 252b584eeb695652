"""The table that dl-plan prints: a decision for each container."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.table import Table

from dltools.cli.fitted_table import FittedTable
from dltools.cli.words import settings_in_words
from dltools.plan.policy.interface import Tone
from dltools.plan.realisation.settings import as_found

if TYPE_CHECKING:
    from dltools.plan.decisions import JobDecision
    from dltools.plan.policy.interface import JobClass
    from dltools.plan.realisation.settings import FoundSettings, Settings

_STYLES = {
    Tone.GROWING: "green",
    Tone.WATCHED: "yellow",
    Tone.DONE: "cyan",
    Tone.MISSED: "red",
    Tone.PLAIN: "",
}


def decisions_table(
    decisions: Iterable[JobDecision], classes: Mapping[str, JobClass], *, wide: bool
) -> Table:
    """Return a row per container: its class, share, present and planned setting, role and reasons;
    a wide table adds signal and prediction. Classes have the colours of their tones. Users have a
    column where any is known."""
    decisions = list(decisions)
    has_users = any(decision.user for decision in decisions)
    table = FittedTable(
        ("CONTAINER", "left"),
        *([("USER", "left")] if has_users else []),
        ("CLASS", "left"),
        ("SHARE", "right"),
        ("NOW", "left"),
        ("THEN", "left"),
        *([("SIGNAL", "left"), ("PREDICTION", "left")] if wide else []),
        ("WHY", "wrap"),
    )
    for decision in decisions:
        wanted = decision.setting or {}
        share = decision.allocation.share
        more = (decision.allocation.signal or "-", decision.allocation.prediction or "-")
        table.add_row(
            decision.name,
            *([decision.user or "-"] if has_users else []),
            decision.job_class,
            "-" if share is None else f"{share:.0%}",
            settings_in_words(decision.present, wanted),
            _then(decision.present, wanted) if wanted else "as now",
            *(more if wide else ()),
            decision.explanation,
            style=_STYLES[known.tone] if (known := classes.get(decision.job_class)) else "",
        )
    return table


def _then(present: FoundSettings, wanted: Settings) -> str:
    """Return what is to be set; "no limit" only where nothing else holds the container then."""
    then = as_found(wanted)
    whole = settings_in_words(present | then)
    return whole if whole == "no limit" else settings_in_words(then, then, whole=False)
