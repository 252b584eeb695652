"""Which containers are left alone, and why."""

from __future__ import annotations

from contextlib import suppress

from dltools.apply.refusals import FOREIGN, PAUSED_ELSEWHERE
from dltools.apply.turn_schedule import Turn
from dltools.engine.interface import Container, Engine, GoneError, RefusedError
from dltools.engine.journal import Entry
from dltools.engine.left_alone_records import LeftAlone, LeftAloneRecords
from dltools.engine.links import own_records


class HandsOff:
    """Which containers are left alone, and why, by the records that all runs make.

    `names`: the names of those that this run leaves alone, by id and reason. `is_forced`: what
    others have changed is no reason.
    """

    def __init__(
        self, engine: Engine, records: LeftAloneRecords, *, is_forced: bool, dry_run: bool
    ) -> None:
        self.names: dict[tuple[str, str], str] = {}
        self.is_forced = is_forced
        self._engine = engine
        self._records = records
        self._recorded: frozenset[str] = frozenset()
        self.dry_run = dry_run

    def why(self, container: Container) -> str | None:
        """Return why no plan may touch a container, None if one may."""
        why = self._records.why(self._engine, container)
        if why != FOREIGN or not self.is_forced:
            return why
        self.end_foreign(container.id)
        return None

    def leave(self, container: Container, why: str) -> None:
        """Leave a container alone, until it is started again."""
        self.names[container.id, why] = container.name
        if not self.dry_run:
            engine, started = self._engine, container.started_text
            record = LeftAlone(engine.id, engine.host, container.id, container.name, why, started)
            self._records.write(record)

    def leave_until_started(self, turn: Turn, why: str) -> None:
        """Leave a container alone that has taken turns, until it is started again."""
        why = f"{why}: left alone until it is started again"
        self.names[turn.container_id, why] = turn.name
        with suppress(GoneError, RefusedError):
            self.leave(self._engine.inspect(turn.container_id), why)

    def end_foreign(self, container_id: str) -> None:
        """Where that is forced, leave a container alone no longer since somebody has changed it."""
        left = self._records.find(container_id) if self.is_forced else None
        if left is not None and left.why == FOREIGN and not self.dry_run:
            self._records.remove(left)

    def note_start(self, container_id: str) -> None:
        """Leave a container alone no longer that has started, if it was left until then."""
        if (record := self._records.find(container_id)) and record.started:
            self._records.remove(record)  # it may have been made after this start

    def take_new(self) -> list[LeftAlone]:
        """Return the records if there are other ones than at the last call; none in a dry run."""
        names = self._records.names()
        if self.dry_run or names == self._recorded:
            return []
        self._recorded = names
        records = own_records(self._engine, self._records.readable())
        return list({record.container_id: record for record in records}.values())

    def note_pause(self, container: Container, entry: Entry | None) -> None:
        """Note a paused container if somebody else has paused it. A dry run, which leaves paused
        what an earlier run has left so, cannot tell."""
        if not self.dry_run and (entry is None or entry.state is None):
            self.names[container.id, PAUSED_ELSEWHERE] = container.name

    def forget(self, container_id: str) -> None:
        """Forget a container that is gone."""
        self.names = {key: name for key, name in self.names.items() if key[0] != container_id}
