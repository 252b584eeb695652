"""A session of dl-apply: the engines and the state that a run may change, until it ends.

`open_session` locks and marks the state. An engine connects when it is first asked, and brings its
turns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.apply.actuator import Actuator
from dltools.apply.delivering import Deliverer
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.history import BY_LEASE, History
from dltools.apply.leases import Guard
from dltools.apply.locks import QUIET_S, LockedState, WriterMarks, end_run, state_after_watchdog
from dltools.apply.migrate.migration import MigrationFiles
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.migrate.move_steps import Mover
from dltools.apply.turns import Rotation
from dltools.apply.undo import end_dead_leases, unpause_leftovers
from dltools.apply.waiting_file import WaitingFile
from dltools.cli.apply.printing import left_paused_message
from dltools.cli.apply.request import Request, rules_of
from dltools.cli.exits import print_message
from dltools.engine import state_folder, turn_notes
from dltools.engine.journal import Journal
from dltools.engine.left_alone_records import FOLDER, LeftAloneRecords
from dltools.engine.links import DistinctEngines
from dltools.engine.registry import open_engine
from dltools.engine.runs import ApplyRun
from dltools.errors import UnavailableError
from dltools.text import listed

if TYPE_CHECKING:
    from dltools.engine.address import Address
    from dltools.engine.interface import Engine

_LONGEST_COPY_S = 86_400.0


def connect(
    address: Address,
    directories: Sequence[Path],
    patience_s: float,
    paused: Callable[[], Sequence[str]] = list,
) -> Engine:
    """Connect to an engine. If it goes away later, wait for it for so long: `paused` are the
    containers that wait with it. `directories` are those where state may be.

    Raises `UnavailableError` with the names of containers that an earlier run has left paused.
    """

    def report(error: UnavailableError) -> None:
        names = paused()
        verb = "is" if len(names) == 1 else "are"
        said = f"{listed(names)} {verb} paused; " if names else ""
        print_message(f"{error} {said}retrying for {patience_s:g} s")

    try:
        return open_engine(address, patience_s=patience_s, report_waiting=report)
    except UnavailableError as error:
        notes = turn_notes.read_notes(directories, None).values()
        names = [note.container_name for note in notes if not note.run.is_alive]
        if not names:
            raise
        hint = turn_notes.how_to_unpause(names)
        raise UnavailableError(f"{error} {listed(names)} may be paused; {hint}") from error


@contextmanager
def open_session(request: Request, *, is_undo: bool = False) -> Iterator[Session]:
    """Lock the state and mark the engines until the block ends: no other dl-apply writes meanwhile.
    An undo needs no mark, as it takes back nobody else's changes; a dry run needs neither."""
    home = state_folder.state_directory(request.state_directory)
    if request.stops and (ended := end_run(home, request.patience_s)):
        print_message(f"ended {ended}")
    state = marks = None
    with ExitStack() as stack:
        if not request.is_dry_run:
            state_folder.prepare(home)
            advice = "dl-apply --undo --stop ends it and undoes" if is_undo else "try again"
            quiet_s = 0.0 if request.is_verbose else QUIET_S
            lock = state_after_watchdog(home, advice, request.patience_s, print_message, quiet_s)
            state = stack.enter_context(lock)
        if not request.is_dry_run and not is_undo:
            marks = WriterMarks(request.beside)
            stack.callback(marks.free)
        session = Session(request, home, state, marks)
        stack.callback(session.waiting.remove)
        yield session


class Session:
    """What a run works with. `actuator` changes containers; `history` is what is written down of
    that, `waiting` what tells all users who waits; `guard` outlives the run, and undoes what it
    holds under lease; `directories` are those where state of this machine may be.

    Engines are connected to when the actuator needs them. Containers that an earlier run has left
    paused are unpaused first, and, but for an undo, what it held under lease is undone.
    """

    def __init__(
        self, request: Request, home: Path, state: LockedState | None, marks: WriterMarks | None
    ) -> None:
        """`state` is locked, and None for a dry run; `marks` are None for an undo, too."""
        self._home, self._state, self._marks = home, state, marks
        self.directories = state_folder.state_directories(request.state_directory)
        self._deliver_directory = request.deliver_directory
        addresses = request.addresses()
        self._is_only_one = len({address.name for address in addresses}) == 1
        self._patience_s = request.patience_s if self._is_only_one else 0.0
        self._run = ApplyRun.of_this_process(" ".join(["dl-apply", *sys.argv[1:]]))
        self._rotation: Rotation | None = None
        self._answering = DistinctEngines()
        self.has_unpaused = False
        """Whether an earlier run had left containers paused."""
        self.history = History(home if state else None, self._run)
        self.waiting = WaitingFile(request.tell if state else None, home, request.contact)
        # It may be silent while it waits for the engine, and for long while it copies or moves.
        copies = request.deliver_directory is not None or len(addresses) > 1
        silent_s = _LONGEST_COPY_S if copies else request.patience_s
        self.guard = Guard(home, self._run, addresses, silent_s)
        self._rules = rules_of(request)
        connectors = {
            address.name: partial(self._engine_actuator, address) for address in addresses
        }
        self.actuator = Actuator(connectors, migrator=self._migrator())

    def _paused(self) -> Sequence[str]:
        return self._rotation.paused_names() if self._rotation else []

    def _engine_actuator(self, address: Address) -> EngineActuator:
        home, folder = self._home, self._deliver_directory
        engine = connect(address, self.directories, self._patience_s, self._paused)
        self._answering.add(engine, address.name)
        if self._state is None:
            if message := left_paused_message(engine, self.directories):
                print_message(message)
        else:
            if self._marks is not None:
                self._marks.set(engine)
            self._state.settle()
            self._unpause_left_paused(engine, home / "rotation")
            if self._marks is not None:
                self._end_dead_leases(engine, home)
            LeftAloneRecords(home / FOLDER).forget_gone(engine)
        rotation = Rotation(engine, home / "rotation", self._run)
        if self._is_only_one:
            self._rotation = rotation
        return EngineActuator(
            engine,
            Journal(home / "journal"),
            rotation,
            self._rules,
            deliverer=Deliverer(engine, folder) if folder else None,
            migrator=self._migrator(),
            dry_run=self._state is None,
        )

    def _migrator(self) -> Migrator:
        """Return what moves jobs between the engines that have answered by then."""
        mover = Mover(self._answering, MigrationFiles(self._home / "migrations"))
        return Migrator(mover, force=self._rules.is_forced, dry_run=self._state is None)

    def _unpause_left_paused(self, engine: Engine, notes: Path) -> None:
        for leftover in unpause_leftovers(engine, notes):
            self.has_unpaused = True
            failure = f"the engine refuses to unpause it: {leftover.refusal}"
            became = failure if leftover.refusal else "it is unpaused now"
            print_message(f"{leftover.name}: an earlier dl-apply had left it paused; {became}")

    def _end_dead_leases(self, engine: Engine, home: Path) -> None:
        ended = end_dead_leases(engine, home, self._run)
        self.history.note_undone(ended, BY_LEASE)
        for result in ended:
            failure = f"its settings cannot be undone: {result.error}"
            became = failure if result.error else "its settings are undone now"
            print_message(
                f"{result.container_name}: the lease of an earlier dl-apply is over; {became}"
            )
