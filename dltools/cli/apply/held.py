"""What dl-apply holds, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dltools.cli.console import make_console
from dltools.cli.exits import complain
from dltools.cli.words import described

if TYPE_CHECKING:
    from dltools.apply.status import Held
    from dltools.engine.containers import Engine

_NAMED = 4
"""How many containers a line names."""


def show(engine: Engine, places: Sequence[Path], *, table: bool) -> None:
    """Print what is held of an engine's containers: a table, or a JSON line each."""
    from dltools.apply.status import held

    found = held(engine, places)
    if not found:
        complain(nothing_to_undo(engine, places))
    elif table:
        from dltools.cli.apply.tables import held_table

        console = make_console()
        console.print(held_table(found))
        for place in dict.fromkeys(one.place for one in found):
            console.print(f"state in {place}; dl-apply --undo puts back", soft_wrap=True)
    else:
        sys.stdout.write("".join(json.dumps(_record(one)) + "\n" for one in found))
    if paused := left_paused(engine, places):
        complain(paused)


def _record(one: Held) -> Mapping[str, Any]:
    run = one.run
    return {
        "kind": "held",
        "container": {"id": one.container_id, "name": one.name},
        "found": one.found,
        "now": one.now,
        "since": one.since or None,
        "run": {"pid": run.pid, "alive": run.alive, "policy": run.policy, "command": run.command},
        "state_dir": str(one.place),
    }


def left_paused(engine: Engine, places: Sequence[Path]) -> str:
    """Say who is paused by a run that has ended without letting them go on, "" where nobody is."""
    from dltools.engine import pauses

    dead = {key: note for key, note in pauses.notes(places, engine.id).items()
            if not note.run.alive}  # fmt: skip
    if not dead:
        return ""
    paused = {one["Id"] for one in engine.containers() if one.get("State") == "paused"}
    names = [note.name for key, note in dead.items() if key in paused]
    return f"the dl-apply that paused them is gone: {pauses.still_paused(names)}" if names else ""


def nothing_to_undo(engine: Engine, places: Sequence[Path]) -> str:
    """Say that the journal is empty, and where it was looked where that is in doubt: containers
    have settings that dltools may have given them."""
    from dltools.apply.status import entries_in, unusual

    line = f"nothing to undo: no entry of this engine in {places[0] / 'journal'}"
    elsewhere = {place: len(entries_in(engine, place)) for place in places[1:]}
    for place, count in elsewhere.items():
        if count:
            line += f"; {count} in {place}: --state-dir {place}"
    odd = unusual(engine)
    if odd:
        shown = [f"{name} ({described(settings)})" for name, settings in odd.items()]
        more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
        line += (f". Not as by default: {', '.join(shown[:_NAMED])}{more}; "
                 "if dltools did that, its journal is elsewhere: --state-dir")  # fmt: skip
    return line
