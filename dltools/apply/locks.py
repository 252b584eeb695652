"""What keeps two runs of dl-apply from writing to the same containers.

The lock keeps apart runs that share a state directory, the mark those that do not. The mark is an
abstract Unix socket whose name holds the engine's ID. The kernel frees it when its process dies,
and tells which process has it, so that nobody can take the name and stay unknown. The command line
takes both before it connects; `dl-apply --status` asks who has the mark.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dltools.apply.waiting_file import remove_left
from dltools.engine.interface import Engine
from dltools.engine.runs import ApplyRun, process_start
from dltools.engine.state_folder import StateFolder
from dltools.errors import RetryError
from dltools.text import printable
from dltools.threads import in_background
from dltools.whole_files import locked

SETTLING_S = 1.0
"""How long an engine may take to carry out what a killed run has asked of it (ours)."""

_LOCK = "apply.lock"


class LockedState:
    """A state directory while it is locked. `holder_died` says whether the last run was killed."""

    def __init__(self, home: Path, *, holder_died: bool) -> None:
        """`home` is the directory."""
        self.home = home
        self._holder_died = holder_died

    def settle(self) -> None:
        """Let an engine that has just answered carry out what a killed run has asked of it: what
        comes later would be taken for somebody else's change."""
        if self._holder_died:
            time.sleep(SETTLING_S)


@contextmanager
def locked_state(home: Path, advice: str = "try again") -> Iterator[LockedState]:
    """Lock a state directory until the block ends. Remove first the files that a killed run had
    begun to write.

    Raises `RetryError`, which ends with the `advice`, where another run holds it, and
    `OutputError`.
    """
    with locked(home / _LOCK, "dl-apply", advice) as holder_died:
        for folder in ("journal", "rotation", "migrations", "history", "told"):
            StateFolder(home / folder).remove_staged()
        remove_left(home)
        yield LockedState(home, holder_died=holder_died)


WATCHDOG = "dltools.apply.leases"
"""The module that a watchdog runs."""

QUIET_S = 2.0
"""How long a run waits for a watchdog before it says so."""

_LOOKS_EVERY_S = 0.1


@contextmanager
def state_after_watchdog(
    home: Path,
    advice: str,
    patience_s: float,
    report: Callable[[str], object],
    quiet_s: float = QUIET_S,
) -> Iterator[LockedState]:
    """Lock a state directory as `locked_state` does. While a watchdog has it, which undoes what a
    run has left, wait for so long; `report` is told of a wait that takes longer than `quiet_s`."""
    begun, is_told, unknown = time.monotonic(), False, 0
    with ExitStack() as stack:
        while True:
            try:
                state = stack.enter_context(locked_state(home, advice))
                break
            except RetryError:
                waited_s, pid = time.monotonic() - begun, _watchdog_with_lock(home)
                unknown = unknown + 1 if pid == 0 else 0
                if pid is None or waited_s >= patience_s or unknown > _TRIES:
                    raise
            if waited_s >= quiet_s and pid and not is_told:
                is_told = True
                report(
                    f"waiting for process {pid}: the watchdog of an earlier run is undoing its "
                    "settings"
                )
            time.sleep(_LOOKS_EVERY_S)
        yield state


def _watchdog_with_lock(home: Path) -> int | None:
    """Return the watchdog that holds the lock of a state directory: 0 where nobody does any more,
    None where it is another process."""
    with suppress(OSError, ValueError):
        pid, _ = _holder(home)
        if not pid:  # it has just ended, or has not said yet who it is
            return 0
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return pid if WATCHDOG.encode() in words else None
    return 0


def _holder(home: Path) -> tuple[int, str]:
    """Return the process that the lock of a state directory names, 0 for none, and what it says of
    it: "process 7: dl-apply". Raises OSError and ValueError."""
    said = printable((home / _LOCK).read_text(errors="replace").strip())
    return (int(said.removeprefix("process ").partition(":")[0]) if said else 0), said


def end_run(home: Path, patience_s: float) -> str:
    """End the run of dl-apply that holds the lock of a state directory, as SIGTERM does; return
    its process and command, "" where none holds it. A watchdog is left to its work.

    A process counts that the lock names and that has it open: a number may be another's by now.
    Raises `RetryError` for a run that has not ended after so long (s), or that a service would
    start again, and `AccessError`.
    """
    try:
        pid, said = _holder(home)
        run = ApplyRun(pid, process_start(pid))
        if not _has_open(pid, home / _LOCK) or _watchdog_with_lock(home):
            return ""
        unit = _UNIT.search(Path(f"/proc/{pid}/cgroup").read_text())
    except (OSError, ValueError):
        return ""
    if unit is not None:
        raise RetryError(
            f"{said} is a service, which would restart: systemctl stop {unit[1]} ends it and "
            "undoes its settings"
        )
    if not run.end(patience_s):
        raise RetryError(
            f"{said} has not ended within {patience_s:g} s of SIGTERM; after kill -9 {pid} its "
            "watchdog undoes what is under lease"
        )
    return said


def _has_open(pid: int, path: Path) -> bool:
    """Tell whether a process has a file open. Raises OSError where that may not be seen."""
    status = path.stat()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if os.path.samestat(link.stat(), status):
                return True
    return False


_UNIT = re.compile(r"/(dltools[\w-]*)\.service$", re.MULTILINE)
"""The unit of a process, in its list of cgroups; those of dltools have such names."""


ANY = -1
"""Instead of a process: whoever it is."""

_TRIES, _BETWEEN_S = 5, 0.1
_LONGEST_COMMAND = 200
_CREDENTIALS = struct.Struct("3i")
"""What SO_PEERCRED gives: process, user, group."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that holds an engine's mark: its number, 0 where nobody can tell, and command."""

    pid: int
    command: str = ""

    def __str__(self) -> str:
        """Return "process 7: dl-apply"."""
        if not self.pid:
            return "a process of another user or container"
        return f"process {self.pid}" + (f": {self.command}" if self.command else "")


class WriterMarks:
    """The marks of one run, for each engine that it writes to."""

    def __init__(self, beside: int | None = None) -> None:
        """`beside` is the process beside which this run may write all the same."""
        self._beside = beside
        self._marks: dict[str, _Mark] = {}

    def set(self, engine: Engine) -> None:
        """Mark an engine, unless this run has marked it. Raises `RetryError` where another run has,
        beside which this one may not write."""
        if engine.id in self._marks:
            return
        name = _name(engine.id)
        for _ in range(_TRIES):
            with suppress(OSError):
                self._marks[engine.id] = _Mark(name)
                return
            writer = writer_of(engine)
            if writer is not None and self._beside in (ANY, writer.pid):
                return
            if writer is not None and writer.pid:
                break
            time.sleep(_BETWEEN_S)  # it has just ended, or does not listen yet
        writer = writer or Writer(0)
        raise RetryError(
            f"another dl-apply is running, {writer} (it writes to the containers of {engine.host})"
            f"; try again, or write beside it: --beside {writer.pid}"
        )

    def free(self) -> None:
        """Take all marks back."""
        while self._marks:
            self._marks.popitem()[1].free()


class _Mark:
    """A socket that listens under a name, and lets all know whose it is who connect."""

    def __init__(self, name: str) -> None:
        """Raises OSError where another socket has the name."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(name)
            self._socket.listen()
        except OSError:
            self._socket.close()
            raise
        self._thread = in_background(self._accept)

    def free(self) -> None:
        """Give the name back."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _accept(self) -> None:
        """Take in who connects: the queue of those who wait would be full otherwise."""
        with suppress(OSError):
            while True:
                self._socket.accept()[0].close()


def writer_of(engine: Engine) -> Writer | None:
    """Return the process that holds an engine's mark, None if none does."""
    name = _name(engine.id)
    pid = _listener(name)
    if not pid or not process_start(pid):
        inodes = _inodes(name)
        if not inodes:
            return None
        pid = _owner(inodes)
    return Writer(pid, _command(pid))


def _name(engine_id: str) -> str:
    return f"\0dltools/dl-apply/{engine_id[:64]}"


def _listener(name: str) -> int:
    """Return the process that began to listen under a name, 0 where that cannot be seen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
            told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return 0
    return int(_CREDENTIALS.unpack(told)[0])


def _inodes(name: str) -> set[str]:
    """Return the inodes of the sockets of a name, also of one that does not listen."""
    with suppress(OSError):
        lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]
        shown = name.replace("\0", "@")
        return {line.split()[6] for line in lines if line.endswith(f" {shown}")}
    return set()


def _owner(inodes: set[str]) -> int:
    """Return a process that has a socket open, 0 where none may be seen."""
    sockets = {f"socket:[{inode}]" for inode in inodes}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):  # the process may end meanwhile
            for path in folder.iterdir():
                with suppress(OSError):
                    if str(path.readlink()) in sockets:
                        return int(folder.parts[2])
    return 0


def _command(pid: int) -> str:
    """Return a process's command line, "" where it is not there."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return shlex.join([Path(words[0]).name, *words[1:-1]])[:_LONGEST_COMMAND]
    return ""
