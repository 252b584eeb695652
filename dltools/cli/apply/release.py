"""dl-apply --release NAME: leave a container alone from now on, whichever run a plan comes to.

A run that goes on, such as the service, finds the record within a second, puts the container's
settings back, and gives it no more turns. Where none runs, that is done here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dltools.apply.history import BY_RELEASE
from dltools.cli.apply.printing import ResultsPrinter
from dltools.cli.apply.session import connect, open_session
from dltools.cli.exits import print_message
from dltools.engine.interface import Container, Engine, GoneError
from dltools.engine.journal import Journal
from dltools.engine.left_alone_records import FOLDER, LeftAlone, LeftAloneRecords
from dltools.engine.state_folder import prepare, state_directories, state_directory
from dltools.engine.turn_notes import TurnNotes
from dltools.errors import RetryError

if TYPE_CHECKING:
    from dltools.actions.plans import Result
    from dltools.cli.apply.request import Request

WHY = "dl-apply --release: left alone for as long as there is this container"

_HEEDS_S, _LOOK_S = 15.0, 0.1
"""How long a run may take to put a container's settings back: it may be about to copy a model."""


def release(request: Request) -> list[Result]:
    """Leave containers alone, or end that, as asked. Return what was put back here. Raises
    `BadParameter` for a name that no container has."""
    directories = state_directories(request.state_directory)
    home = state_directory(request.state_directory)
    prepare(home)
    records = LeftAloneRecords(home / FOLDER)
    engines = [connect(address, directories, request.patience_s) for address in request.addresses()]
    containers = [_find(engines, name) for name in request.releases]
    for engine, container in containers:
        record = LeftAlone(engine.id, engine.host, container.id, container.name, WHY)
        if request.undoes:
            records.remove(record)
            print_message(f"{container.name}: plans may change it again")
        else:
            records.write(record)
    if request.undoes:
        return []
    results = _put_back(home, [container.id for _, container in containers], request)
    for _, one in containers:
        print_message(
            f"{one.name}: left alone from now on; dl-apply --undo --release {one.name} ends that"
        )
    return results


def _find(engines: Sequence[Engine], name: str) -> tuple[Engine, Container]:
    for engine in engines:
        try:
            return engine, engine.inspect(name)
        except GoneError:
            continue
    raise typer.BadParameter(f"no container is called {name!r}: docker ps -a lists the names")


def _put_back(home: Path, ids: Sequence[str], request: Request) -> list[Result]:
    """Restore containers, or wait until the run that holds the state has done so."""
    until = time.monotonic() + _HEEDS_S
    while _is_held(home, ids):
        try:
            with open_session(request, is_undo=True) as session:
                undo = session.history.of_undo(partial(session.actuator.undo, ids), BY_RELEASE)
                return ResultsPrinter(request.format).show(undo)
        except RetryError as error:
            if time.monotonic() > until:
                raise RetryError(
                    f"not restored yet, but will be as soon as possible: {error}"
                ) from error
            time.sleep(_LOOK_S)
    return []


def _is_held(home: Path, ids: Sequence[str]) -> bool:
    """Tell whether one of these containers is changed, or takes turns."""
    folders = (Journal(home / "journal"), TurnNotes(home / "rotation"))
    return any(folder.find(id_) is not None for folder in folders for id_ in ids)
