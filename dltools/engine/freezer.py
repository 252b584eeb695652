"""The kernel's freezer: stopping and going on with all processes of a cgroup, by its files.

For engines that have no word for it. Version 1 has a controller of its own, version 2 a file in
each cgroup.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

from dltools.engine.cgroup import Cgroup
from dltools.engine.interface import Engine, GoneError, RefusedError
from dltools.engine.kernel_files import read_flat, read_text
from dltools.errors import DltoolsError

_FREEZES_WITHIN_S, _LOOK_S = 5.0, 0.005

_ANSWERS_WITHIN_S = 2.0
"""How long an engine may take to say anything of a container (ours): it takes milliseconds."""


def is_frozen(cgroup: Cgroup) -> bool:
    """Tell whether a cgroup is frozen, or is about to be."""
    found = cgroup.directory("freezer")
    if found is None:
        return False
    if found.version == 1:
        return read_text(found.path / "freezer.state").strip() in ("FROZEN", "FREEZING")
    return read_text(found.path / "cgroup.freeze").strip() == "1"


def freeze(cgroup: Cgroup) -> None:
    """Freeze a cgroup, and wait until all its processes stand. Raises `RefusedError`, after which
    none stands, and `GoneError`."""
    _write(cgroup, frozen=True)
    until = time.monotonic() + _FREEZES_WITHIN_S
    while not _stands(cgroup):
        if time.monotonic() > until:
            thaw(cgroup)
            raise RefusedError("its processes do not freeze: one waits in the kernel")
        time.sleep(_LOOK_S)


def thaw(cgroup: Cgroup) -> None:
    """Let the processes of a cgroup go on. Raises `RefusedError` and `GoneError`."""
    _write(cgroup, frozen=False)


def thaw_if_stuck(engine: Engine, id_: str, cgroup: Cgroup) -> None:
    """Thaw a container of which its engine says nothing any more, since what it begins there is
    frozen half-way. An engine that answers is not stuck: what the kernel thaws it calls paused all
    the same, and cannot unpause."""
    answered = threading.Event()

    def ask() -> None:
        with suppress(DltoolsError):
            engine.inspect(id_)
        answered.set()

    threading.Thread(target=ask, daemon=True).start()
    if not answered.wait(_ANSWERS_WITHIN_S):
        with suppress(GoneError, RefusedError):
            thaw(cgroup)


def _write(cgroup: Cgroup, *, frozen: bool) -> None:
    found = cgroup.directory("freezer")
    if found is None:
        raise RefusedError("its freezer cgroup is not visible here")
    if found.version == 1:
        path, text = found.path / "freezer.state", "FROZEN" if frozen else "THAWED"
    else:
        path, text = found.path / "cgroup.freeze", str(int(frozen))
    try:
        _overwrite(path, text)
    except FileNotFoundError as error:
        raise GoneError("its cgroup is gone") from error
    except OSError as error:
        raise RefusedError(f"{path} cannot be written: {error.strerror or error}") from error


def _overwrite(path: Path, text: str) -> None:
    """Write a file of the kernel, which must be there: another one is not to be made."""
    with path.open("r+") as file:
        file.write(text)


def _stands(cgroup: Cgroup) -> bool:
    """Tell whether all processes of a cgroup that was frozen stand."""
    found = cgroup.directory("freezer")
    if found is None or not found.path.is_dir():
        return True
    if found.version == 1:
        return read_text(found.path / "freezer.state").strip() == "FROZEN"
    return read_flat(found.path / "cgroup.events").get("frozen") == 1
