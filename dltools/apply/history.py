"""What dl-apply has changed, when, by which run and why, and how each change ended: a log of
bounded size in the state directory, for `dl-apply --history`.

The folder `history` has two files of JSON Lines. The newer one grows by one write for each change;
at `LARGEST` bytes it takes the place of the older one. Whoever writes holds the state's lock. A
killed run may leave half a line, which readers pass over.

The log helps people. Nothing depends on it, so that a full disk ends no undo.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dltools.actions.plans import OnResult, Op, Plan, Result, Status
from dltools.actions.settings import Settings, TurnSettings, as_found
from dltools.apply.original_settings import timestamp
from dltools.apply.refusals import FOREIGN
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.state_folder import StateFolder
from dltools.engine.state_records import decode, encode
from dltools.errors import DltoolsError
from dltools.notation.json_values import parse_json
from dltools.notation.limits import only, weight_of

Work = Callable[[OnResult], Any]
"""What is done and reports results, which it may also return."""

LARGEST = 8 << 20
"""Bytes at which a file has its last line."""

NEWER, OLDER = "newer.jsonl", "older.jsonl"

_LONGEST_REASON = 200

BY_UNDO, BY_RESTORE, BY_LEASE, BY_BREAK = "--undo", "run ended", "lease over", "plans broke off"
BY_RELEASE = "--release"
BY_PLAN, BY_OTHERS, BY_EXIT, BY_TURN = "changed again", "by others", "exited", "left turns"
"""How changes end."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a container's settings."""

    at: str
    """When it was made (RFC 3339)."""

    container_id: str
    """The engine's id of the container."""

    container_name: str
    """The name of the container."""

    before: Settings
    """The settings before, of those that were changed."""

    after: Settings
    """The same settings after."""

    host: str = ""
    """The name of the container's host, "" if unknown."""

    reason: str = ""
    """That of the action, shortened; "" if unknown."""

    run: ApplyRun = UNKNOWN_RUN
    """The run that made it."""

    ended: str = ""
    """When it ended (RFC 3339), "" while it has not."""

    how: str = ""
    """How it ended, "" while it has not."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a run has made of a container: where it is, its settings, those before the run first
    changed them, and the newest reason."""

    host: str
    name: str
    settings: Settings
    own: Settings
    reason: str

    @property
    def is_lower(self) -> bool:
        """Whether its weight is lower than before."""
        return self.settings.get("weight", math.inf) < weight_of(self.own)


class History:
    """Writes down what one run changes; without a state directory, nothing."""

    def __init__(self, home: Path | None = None, run: ApplyRun = UNKNOWN_RUN) -> None:
        """`home` is the state directory, which this run has locked."""
        self._folder = None if home is None else StateFolder(home / "history")
        self._run = run
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()

    @property
    def held(self) -> Mapping[str, Held]:
        """The containers that this run has changed, and that have not ended since, by id."""
        return self._held

    def of_plan(self, plan: Plan, work: Work) -> Work:
        """Return work that also writes down what a plan changes."""
        self._run = replace(self._run, policy=plan.policy)
        actions = {action.id: action for action in plan.actions}
        self.end_turns(action.container_id for action in plan.actions if action.op is Op.ROTATE)

        def note(result: Result) -> None:
            if result.error == FOREIGN:
                self.leave(result.container_id)
            if result.status is not Status.APPLIED or self._is_known(result):
                return
            action = actions.get(result.id)
            reason = action.reason[:_LONGEST_REASON] if action else ""
            host = action.host if action else ""
            self._hold(result, host, reason)
            record = encode(_change_of(result, host, reason, self._run))
            self._write({name: value for name, value in record.items() if value != ""})

        return _noting(work, note)

    def of_undo(self, work: Work, how: str) -> Work:
        """Return work that also writes down which changes it ends."""
        return _noting(work, lambda result: self.note_undone((result,), how))

    def note_undone(self, results: Iterable[Result], how: str) -> None:
        """Write down which changes have ended by an undo."""
        for result in results:
            if result.error == FOREIGN:
                self._end(result.container_id, BY_OTHERS)
            elif result.status in (Status.APPLIED, Status.UNCHANGED):
                self._end(result.container_id, how)

    def leave(self, container_id: str) -> None:
        """Write down that somebody else has a container now, if this run has changed it."""
        if container_id in self._held:
            self._end(container_id, BY_OTHERS)

    def note_running(self, host: str, ids: Collection[str]) -> None:
        """Write down which of a host's changed containers have ended: those that do not run."""
        own = {id_ for id_, held in self._held.items() if held.host == host}
        for id_ in sorted(own.difference(ids)):
            self._end(id_, BY_EXIT)

    def end_turns(self, staying: Iterable[str] = (), how: str = BY_TURN) -> None:
        """Write down which containers take no more turns: all but those with the ids `staying`."""
        stay = set(staying)
        for id_, held in self._held.items():
            if id_ not in stay and "turn_s" in held.settings:
                others = held.settings.keys() - TurnSettings.__annotations__.keys()
                self._held[id_] = replace(held, settings=only(held.settings, others))
                names = sorted(TurnSettings.__annotations__)
                self._write(_end_of(id_, how) | {"names": names})

    def _is_known(self, result: Result) -> bool:
        """Tell whether a container takes turns already: each plan gives it another one."""
        held = self._held.get(result.container_id)
        return held is not None and "turn_s" in result.after and "turn_s" in held.settings

    def _hold(self, result: Result, host: str, reason: str) -> None:
        held = self._held.get(result.container_id)
        settings, own = (held.settings, held.own) if held else ({}, {})
        present, before = {**settings, **result.after}, {**result.before, **own}
        self._held[result.container_id] = Held(
            host, result.container_name, as_found(present), as_found(before), reason
        )

    def _end(self, container_id: str, how: str) -> None:
        self._held.pop(container_id, None)
        self._write(_end_of(container_id, how))

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._folder is None:
            return
        with self._lock, suppress(OSError, DltoolsError):
            line = json.dumps(record, separators=(",", ":")) + "\n"
            if self._folder.append(NEWER, line.encode()) >= LARGEST:
                self._folder.rename(NEWER, OLDER)


def _noting(work: Work, note: OnResult) -> Work:
    def noted(on_result: OnResult) -> Any:
        def both(result: Result) -> None:
            note(result)
            on_result(result)

        return work(both)

    return noted


def _change_of(result: Result, host: str, reason: str, run: ApplyRun) -> Change:
    names = [name for name in result.after if result.before.get(name) != result.after.get(name)]
    before, after = only(result.before, names), only(result.after, names)
    id_, name = result.container_id, result.container_name
    return Change(timestamp(), id_, name, before, after, host, reason, run)


def _end_of(container_id: str, how: str) -> dict[str, Any]:
    return {"ended": timestamp(), "container_id": container_id, "how": how}


def read_history(home: Path) -> Iterator[Change]:
    """Yield the changes in a state directory, the newest first, each with how it ended. What is
    damaged is passed over. Raises `AccessError` where the directory cannot be trusted."""
    folder = StateFolder(home / "history")
    ends = _Ends()
    for name in (NEWER, OLDER):
        for line in reversed((folder.read(name) or b"").splitlines()):
            with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
                record = parse_json(line)
                if "at" in record:
                    change: Change = decode(Change, record)
                    ended, how = ends.of(change)
                    yield replace(change, ended=ended, how=how)
                elif "how" in record:
                    ends.note(record)


class _Ends:
    """How the changes end that come next, while a log is read backwards."""

    def __init__(self) -> None:
        self._ends: dict[str, dict[str, tuple[str, str]]] = {}  # by container and setting, "": all

    def note(self, record: Mapping[str, Any]) -> None:
        """Take note of the end of changes."""
        end = str(record["ended"]), str(record["how"])
        id_, names = str(record["container_id"]), record.get("names")
        if names is None:
            self._ends[id_] = {"": end}
        else:
            self._ends.setdefault(id_, {}).update({str(name): end for name in names})

    def of(self, change: Change) -> tuple[str, str]:
        """Return when and how a change ends, and take note that it ends the ones before."""
        ends = self._ends.setdefault(change.container_id, {})
        own = [ends[name] for name in change.after if name in ends]
        end = min(own, default=ends.get("", ("", "")))
        if not end[1] and "turn_s" in change.after and not change.run.is_alive:
            end = "", BY_RESTORE
        ends |= dict.fromkeys(change.after, (change.at, BY_PLAN))
        return end
