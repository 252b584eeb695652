"""The engine and the state of a run of dl-apply, and what earlier runs have left there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.cli.exits import print_message

if TYPE_CHECKING:
    from dltools.apply.actuator import Actuator
    from dltools.apply.actuators import Actuators, Connector
    from dltools.apply.deliver.deliverer import Deliverer
    from dltools.apply.migrate.migrator import Migrator
    from dltools.apply.turns import Rotation
    from dltools.cli.apply.request import Request
    from dltools.engine.addresses import Address
    from dltools.engine.containers import Engine
    from dltools.errors import UnavailableError


class ApplyContext:
    """The engines and the state directory that a run works with."""

    def __init__(self, request: Request) -> None:
        """Nothing is connected or locked yet."""
        self._request = request
        self._engines = request.engines
        self._state_directory = request.state_directory
        self._patience = request.patience_s
        self._rotation: Rotation | None = None
        self._by_host: dict[str, Engine] = {}
        self.has_unpaused = False  # whether an earlier run had left containers paused

    def state_directories(self) -> list[Path]:
        """Return the state directories to look into, the one in use first."""
        from dltools.engine import state_directory

        return state_directory.all_directories(self._state_directory)

    def addresses(self) -> list[Address]:
        """Return the addresses of the engines. Raises `ConfigError` and `UnavailableError`."""
        return self._engines.addresses()

    def connect(self, address: Address, *, is_only_one: bool = True) -> Engine:
        """Connect to an engine; wait for it later, where it goes away, if it is the only one.

        Raises `UnavailableError` with the names of containers that an earlier run has left paused.
        """
        from dltools.engine import turn_notes
        from dltools.engine.connect import connect
        from dltools.engine.containers import Engine
        from dltools.engine.patience import Patient
        from dltools.errors import UnavailableError

        try:
            found = connect(address)
            if not is_only_one:
                return Engine(found)
            return Engine(Patient(found, self._patience, self._report_waiting))
        except UnavailableError as error:
            notes = turn_notes.read_notes(self.state_directories(), None).values()
            names = [note.name for note in notes if not note.run.is_alive]
            if not names:
                raise
            hint = turn_notes.how_to_unpause(names)
            reason = f"{error} {turn_notes.listed(names)} may be paused; {hint}"
            raise UnavailableError(reason) from error

    def _report_waiting(self, error: UnavailableError) -> None:
        from dltools.engine.turn_notes import listed

        names = self._rotation.paused_names() if self._rotation else []
        verb = "is" if len(names) == 1 else "are"
        paused = f"{listed(names)} {verb} paused; " if names else ""
        print_message(f"{error} {paused}asking again for {self._patience:g} s")

    @contextmanager
    def actuator(self, dry_run: bool) -> Iterator[Actuator | Actuators]:
        """Connect, and lock the state until the block ends: no other dl-apply writes meanwhile.

        Containers that an earlier run has left paused are unpaused first.
        """
        from dltools.apply.actuators import Actuators
        from dltools.engine import state_directory
        from dltools.files import locked

        home = state_directory.directory(self._state_directory)
        with nullcontext() if dry_run else locked(home / "apply.lock", "dl-apply"):
            if not dry_run and (earlier := state_directory.earlier(self._state_directory)):
                _move_state(earlier, home)
            addresses = self.addresses()
            if len(addresses) == 1:
                made = self._actuator(addresses[0], home, dry_run=dry_run)
                self._rotation = made.rotation
                yield made
            else:
                connectors = {one.name: self._connector(one, home, dry_run=dry_run)
                              for one in addresses}  # fmt: skip
                yield Actuators(connectors, migrator=self._migrator(home, dry_run=dry_run))

    def _connector(self, address: Address, home: Path, *, dry_run: bool) -> Connector:
        return lambda: self._actuator(address, home, dry_run=dry_run, is_only_one=False)

    def _actuator(
        self, address: Address, home: Path, *, dry_run: bool, is_only_one: bool = True
    ) -> Actuator:
        from dltools.apply.actuator import Actuator
        from dltools.apply.journal import Journal
        from dltools.apply.turns import Rotation
        from dltools.engine.runs import ApplyRun

        engine = self.connect(address, is_only_one=is_only_one)
        self._by_host[engine.host] = engine
        if dry_run:
            self._report_left_paused(engine)
        else:
            self._unpause_left_paused(engine, home / "rotation")
        run = ApplyRun.of_this_process(" ".join(["dl-apply", *sys.argv[1:]]))
        rotation = Rotation(engine, home / "rotation", run)
        return Actuator(
            engine, Journal(home / "journal"), rotation,
            deliverer=self._deliverer(engine, home / "deliveries"),
            migrator=self._migrator(home, dry_run=dry_run), dry_run=dry_run,
        )  # fmt: skip

    def _migrator(self, home: Path, *, dry_run: bool) -> Migrator:
        """Return what moves jobs between the engines that have answered by then."""
        from dltools.apply.migrate.migrator import Migrator
        from dltools.apply.migrate.mover import Mover
        from dltools.apply.migrate.record import MigrationFiles

        mover = Mover(self._by_host, MigrationFiles(home / "migrations"))
        return Migrator(mover, force=self._request.forces, dry_run=dry_run)

    def _deliverer(self, engine: Engine, records: Path) -> Deliverer | None:
        """Return what delivers models, None if that is not asked for."""
        from dltools.apply.deliver.deliverer import Deliverer
        from dltools.apply.deliver.delivery import DeliveryFiles
        from dltools.apply.deliver.hook import Hook

        asked = self._request
        if asked.deliver_directory is None:
            return None
        hook = Hook(asked.deliver_hook, asked.hook_limit_s) if asked.deliver_hook else None
        return Deliverer(engine, DeliveryFiles(records), asked.deliver_directory, hook)

    def _report_left_paused(self, engine: Engine) -> None:
        from dltools.cli.apply.status import left_paused_message

        if message := left_paused_message(engine, self.state_directories()):
            print_message(message)

    def _unpause_left_paused(self, engine: Engine, notes: Path) -> None:
        from dltools.apply.leftovers import unpause_leftovers

        for one in unpause_leftovers(engine, notes):
            self.has_unpaused = True
            failure = f"the engine refuses to unpause it: {one.refusal}"
            became = failure if one.refusal else "it is unpaused now"
            print_message(f"{one.name}: an earlier dl-apply had left it paused; {became}")


def _move_state(source: Path, target: Path) -> None:
    from dltools.apply.earlier_state import move_state

    if count := move_state(source, target):
        entries = "1 entry" if count == 1 else f"{count} entries"
        print_message(f"moved {entries} from {source} to {target}, where state is kept now")
