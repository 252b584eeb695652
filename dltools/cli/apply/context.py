"""What a dl-apply command line asks for, and what its run works with: engines, state, and what
earlier runs have left there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.apply.actuator import Actuator
from dltools.apply.deliver.deliverer import Deliverer, Hook
from dltools.apply.deliver.delivery import DeliveryFiles
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.history import BY_LEASE, History
from dltools.apply.leases import Guard
from dltools.apply.locks import QUIET_S, LockedState, WriterMarks, end_run, state_after_watchdog
from dltools.apply.migrate.migration import MigrationFiles
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.migrate.mover import Mover
from dltools.apply.original_settings import Journal
from dltools.apply.recovery import end_dead_leases, unpause_leftovers
from dltools.apply.turns import Rotation
from dltools.apply.waiting_file import WaitingFile
from dltools.cli.apply.printing import left_paused_message
from dltools.cli.exits import print_message
from dltools.engine import state_folder, turn_notes
from dltools.engine.identity import DistinctEngines
from dltools.engine.left_alone import FOLDER, LeftAloneRecords
from dltools.engine.registry import open_engine
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.engine.state_folder import prepare
from dltools.errors import UnavailableError
from dltools.text import listed

if TYPE_CHECKING:
    from dltools.cli.apply.request import Request
    from dltools.engine.address import Address
    from dltools.engine.interface import Engine
_LONGEST_COPY_S = 86_400.0


HOOK_LIMIT_S = 600.0
"""The longest that the hook of a delivery may take; timeout(1) before it kills it sooner."""


class ApplyContext:
    """The engines and the state directory that a run works with."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._state_directory = request.state_directory
        self._patience = request.patience_s
        self._rotation: Rotation | None = None
        self._state: LockedState | None = None
        self.guard: Guard | None = None
        """What outlives the run, and undoes what it holds under lease; made with the actuator."""
        self._run = UNKNOWN_RUN
        self.history = History()
        """What is written down of this run's changes; nothing before the actuator is made."""
        self.waiting = WaitingFile()
        """What tells all users who waits; nothing before the actuator is made."""
        self._ends_leases = True
        self._marks: WriterMarks | None = None
        self.has_unpaused = False  # whether an earlier run had left containers paused

    def state_directories(self) -> list[Path]:
        """Return the state directories to look into, the one in use first."""
        return state_folder.state_directories(self._state_directory)

    def addresses(self) -> list[Address]:
        """Return the addresses of the engines. Raises `ConfigError` and `UnavailableError`."""
        return self._request.addresses()

    def connect(self, address: Address, *, is_only_one: bool = True) -> Engine:
        """Connect to an engine; wait for it later, where it goes away, if it is the only one.

        Raises `UnavailableError` with the names of containers that an earlier run has left paused.
        """
        try:
            patience_s = self._patience if is_only_one else 0.0
            return open_engine(address, patience_s=patience_s, report_waiting=self._report_waiting)
        except UnavailableError as error:
            notes = turn_notes.read_notes(self.state_directories(), None).values()
            names = [note.container_name for note in notes if not note.run.is_alive]
            if not names:
                raise
            hint = turn_notes.how_to_unpause(names)
            reason = f"{error} {listed(names)} may be paused; {hint}"
            raise UnavailableError(reason) from error

    def _report_waiting(self, error: UnavailableError) -> None:

        names = self._rotation.paused_names() if self._rotation else []
        verb = "is" if len(names) == 1 else "are"
        paused = f"{listed(names)} {verb} paused; " if names else ""
        print_message(f"{error} {paused}asking again for {self._patience:g} s")

    @cached_property
    def _answering(self) -> DistinctEngines:
        return DistinctEngines()

    @contextmanager
    def actuator(self, dry_run: bool, *, is_undo: bool = False) -> Iterator[Actuator]:
        """Connect, lock the state and mark the engines until the block ends: no other dl-apply
        writes meanwhile. An undo needs no mark, as it takes back nobody else's changes.

        Containers that an earlier run has left paused are unpaused first, and, but for an undo,
        what an earlier run held under lease is undone.
        """
        home = state_folder.state_directory(self._state_directory)
        advice = "dl-apply --undo --stop ends it and undoes" if is_undo else "try again"
        if self._request.stops:
            self._end_run(home)
        with (
            nullcontext() if dry_run else self._locked_state(home, advice),
            nullcontext() if dry_run or is_undo else self._marked(),
        ):
            addresses = self.addresses()
            self._ends_leases = not is_undo
            self._run = ApplyRun.of_this_process(" ".join(["dl-apply", *sys.argv[1:]]))
            self.history = History(None if dry_run else home, self._run)
            told = None if dry_run else self._request.tell
            self.waiting = WaitingFile(told, home, self._request.contact)
            self.guard = self._made_guard(home, addresses)
            by_name = {one.name: one for one in addresses}
            connect = partial(
                self._engine_actuator, home=home, dry_run=dry_run, is_only_one=len(by_name) == 1
            )
            connectors = {name: partial(connect, one) for name, one in by_name.items()}
            try:
                yield Actuator(connectors, migrator=self._migrator(home, dry_run=dry_run))
            finally:
                self.waiting.remove()

    def _end_run(self, home: Path) -> None:
        """End the run that holds the state, and say so."""
        if ended := end_run(home, self._patience):
            print_message(f"ended {ended}")

    @contextmanager
    def _marked(self) -> Iterator[None]:
        """Mark the engines that answer until the block ends."""
        self._marks = WriterMarks(self._request.beside)
        try:
            yield
        finally:
            self._marks.free()

    @contextmanager
    def _locked_state(self, home: Path, advice: str) -> Iterator[None]:
        """Lock the state. `advice` is for those whom another run keeps out; only a watchdog is
        waited for."""
        prepare(home)
        quiet_s = 0.0 if self._request.is_verbose else QUIET_S
        patience_s = self._patience
        with state_after_watchdog(home, advice, patience_s, print_message, quiet_s) as self._state:
            yield

    def _engine_actuator(
        self, address: Address, *, home: Path, dry_run: bool, is_only_one: bool
    ) -> EngineActuator:
        engine = self.connect(address, is_only_one=is_only_one)
        self._answering.add(engine, address.name)
        if dry_run:
            self._report_left_paused(engine)
        else:
            assert self._state is not None
            if self._marks is not None:
                self._marks.set(engine)
            self._state.settle()
            self._unpause_left_paused(engine, home / "rotation")
            if self._ends_leases:
                self._end_dead_leases(engine, home)
            LeftAloneRecords(home / FOLDER).forget_gone(engine)
        rotation = Rotation(engine, home / "rotation", self._run)
        if is_only_one:
            self._rotation = rotation
        return EngineActuator(
            engine,
            Journal(home / "journal"),
            rotation,
            self._request.rules,
            deliverer=self._deliverer(engine, home / "deliveries"),
            migrator=self._migrator(home, dry_run=dry_run),
            dry_run=dry_run,
        )

    def _migrator(self, home: Path, *, dry_run: bool) -> Migrator:
        """Return what moves jobs between the engines that have answered by then."""
        mover = Mover(self._answering, MigrationFiles(home / "migrations"))
        return Migrator(mover, force=self._request.rules.is_forced, dry_run=dry_run)

    def _made_guard(self, home: Path, addresses: Sequence[Address]) -> Guard:
        """Return the guard of this run, which may be silent while it waits for the engine, and for
        long while it copies a model or moves a job."""
        copies = self._request.deliver_directory is not None or len(addresses) > 1
        return Guard(home, self._run, addresses, _LONGEST_COPY_S if copies else self._patience)

    def _deliverer(self, engine: Engine, records: Path) -> Deliverer | None:
        """Return what delivers models, None if that is not asked for."""
        asked = self._request
        if asked.deliver_directory is None:
            return None
        hook = Hook(asked.deliver_hook, HOOK_LIMIT_S) if asked.deliver_hook else None
        return Deliverer(engine, DeliveryFiles(records), asked.deliver_directory, hook)

    def _report_left_paused(self, engine: Engine) -> None:
        if message := left_paused_message(engine, self.state_directories()):
            print_message(message)

    def _unpause_left_paused(self, engine: Engine, notes: Path) -> None:
        for one in unpause_leftovers(engine, notes):
            self.has_unpaused = True
            failure = f"the engine refuses to unpause it: {one.refusal}"
            became = failure if one.refusal else "it is unpaused now"
            print_message(f"{one.name}: an earlier dl-apply had left it paused; {became}")

    def _end_dead_leases(self, engine: Engine, home: Path) -> None:
        ended = end_dead_leases(engine, home, self._run)
        self.history.note_undone(ended, BY_LEASE)
        for one in ended:
            failure = f"its settings cannot be undone: {one.error}"
            became = failure if one.error else "its settings are undone now"
            print_message(
                f"{one.container_name}: the lease of an earlier dl-apply is over; {became}"
            )
