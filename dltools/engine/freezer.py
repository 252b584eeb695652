"""The kernel's freezer: stopping and going on with all processes of a cgroup, by its files.

For engines that have no word for it. Version 1 has a controller of its own, version 2 a file in
each cgroup.
"""

from __future__ import annotations

from contextlib import suppress

from dltools.engine.cgroup_files import Directory
from dltools.engine.interface import Engine, GoneError, RefusedError
from dltools.engine.kernel_reading import read_flat, read_text
from dltools.engine.patience import comes_true
from dltools.threads import in_background

_FREEZES_WITHIN_S, _LOOK_S = 5.0, 0.005

_ANSWERS_WITHIN_S = 2.0
"""How long an engine may take to say anything of a container (ours): it takes milliseconds."""


FILES = {1: ("freezer.state", "THAWED", "FROZEN"), 2: ("cgroup.freeze", "0", "1")}
"""For each version the file, and its texts of a cgroup that goes on and of one that is to stand."""


def is_frozen(directory: Directory | None) -> bool:
    """Tell whether a cgroup is frozen, or is to be. It is given by the directory of its freezer,
    None where it has none."""
    if directory is None:
        return False
    name, thawed, _ = FILES[directory.version]
    return read_text(directory.path / name).strip() not in ("", thawed)


def is_freezing(directory: Directory) -> bool:
    """Tell whether a cgroup is to stand, and some of its processes do not yet."""
    return is_frozen(directory) and not _stands(directory)


def _stands(directory: Directory) -> bool:
    """Tell whether all processes of a cgroup that was frozen stand."""
    if directory.version == 1:
        return read_text(directory.path / FILES[1][0]).strip() == FILES[1][2]
    return read_flat(directory.path / "cgroup.events").get("frozen") == 1


def freeze(asked: Directory | None) -> None:
    """Freeze a cgroup, and wait until all its processes stand. Raises `RefusedError`, after which
    none stands, and `GoneError`."""
    directory = _written(asked, frozen=True)

    def is_done() -> bool:
        return _stands(directory) or not directory.path.is_dir()

    if not comes_true(is_done, _FREEZES_WITHIN_S, _LOOK_S):
        thaw(directory)
        raise RefusedError("its processes do not freeze: one waits in the kernel")


def thaw(directory: Directory | None) -> None:
    """Let the processes of a cgroup go on. Raises `RefusedError` and `GoneError`."""
    _written(directory, frozen=False)


def thaw_if_stuck(engine: Engine, id_: str, directory: Directory) -> None:
    """Thaw a container of which its engine says nothing any more, since what it begins there is
    frozen half-way. An engine that answers is not stuck: what the kernel thaws it calls paused all
    the same, and cannot unpause."""

    def ask() -> None:
        with suppress(Exception):  # any answer will do
            engine.inspect(id_)

    asking = in_background(ask)
    asking.join(_ANSWERS_WITHIN_S)
    if asking.is_alive():
        with suppress(GoneError, RefusedError):
            thaw(directory)


def _written(directory: Directory | None, *, frozen: bool) -> Directory:
    """Write the file of a freezer, which must be there: another one is not to be made."""
    if directory is None:
        raise RefusedError("it does not run, or its freezer is not visible here")
    name, *texts = FILES[directory.version]
    try:
        with (directory.path / name).open("r+") as file:
            file.write(texts[frozen])
    except FileNotFoundError as error:
        raise GoneError("its cgroup is gone") from error
    except OSError as error:
        why = error.strerror or error
        raise RefusedError(f"{directory.path / name} cannot be written: {why}") from error
    return directory
