"""How long the settings of plans hold, and the watchdog that sees to it when dl-apply cannot.

A run has a `Lease`, which each plan renews, and a `Guard`, which starts the watchdog and says that
the run is alive. The watchdog is a small process (`python -m dltools.apply.leases`) that outlives a
killed dl-apply, and undoes what that held under lease.

Its standard input is a pipe from dl-apply. When that ends without a farewell, dl-apply has died;
when nothing comes for too long, dl-apply hangs, and is killed first. So is one that was stopped, as
by Ctrl-Z, for longer than its last word allows: jobs must not wait for somebody who sends SIGCONT,
and one that went on would not know what was undone.

Where dl-apply ends in order and leaves leases behind, the watchdog waits for their end, one for all
runs of a state directory. It ends with its purpose: when dl-apply has ended in order, when all is
undone, or when another dl-apply has the lock, which undoes the same when it begins.
"""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.engine.address import Address
from dltools.engine.docker.addresses import context_address
from dltools.engine.runs import ApplyRun
from dltools.errors import DltoolsError, RetryError, UnavailableError
from dltools.threads import in_threads

if TYPE_CHECKING:
    from dltools.apply.locks import LockedState


LEAST_LEASE_S = 10.0
"""Shortest lease that is chosen without being asked for."""

FIRST_LEASE_S = 180.0
"""Lease before the second plan, while the interval between plans is not known yet (ours)."""

_INTERVALS = 3
_REMEMBERED = 10


class Lease:
    """The lease that each new plan renews. By default that of a single plan is the one that the
    plan names, that of a stream three intervals between plans: the longest of the last ten, as
    samples are taken early when a container starts."""

    def __init__(
        self, asked_s: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin without a lease; `asked_s` is its length, None for the default, 0 for none."""
        self._asked_s = asked_s
        self._clock = clock
        self._intervals: deque[float] = deque(maxlen=_REMEMBERED)
        self._renewed: float | None = None
        self._planned_s: float | None = None

    @property
    def length_s(self) -> float:
        """Its length now (s)."""
        if self._asked_s is not None:
            return self._asked_s
        if self._planned_s is not None:
            return self._planned_s
        if not self._intervals:
            return FIRST_LEASE_S
        return max(LEAST_LEASE_S, _INTERVALS * max(self._intervals))

    @property
    def is_possible(self) -> bool:
        """Whether anything may be under lease."""
        return self._asked_s is None or self._asked_s > 0

    def is_for(self, planned_s: float | None, *, is_live: bool) -> bool:
        """Tell whether a plan is under lease: one of a live stream, one that names its own (s), and
        any if it was asked for."""
        self._planned_s = None if is_live else planned_s
        if self._asked_s is None:
            return is_live or planned_s is not None
        return self.is_possible

    def renew(self) -> None:
        """Count from now on: a plan has come."""
        now = self._clock()
        if self._renewed is not None:
            self._intervals.append(now - self._renewed)
        self._renewed = now

    def end(self) -> None:
        """Count no longer, until the next plan comes."""
        self._renewed = None

    def seconds_left(self) -> float | None:
        """Return how long it still holds, None if none is counted."""
        if self._renewed is None:
            return None
        return max(0.0, self._renewed + self.length_s - self._clock())


BEAT_S = 1.0
"""How often a run should say that it is alive, at least."""

STILL_S = 5.0
"""How long a run whose containers take turns may be stopped (ours): one of them waits."""

_HANGS_S = 60.0
_ENDS_S = 10.0


class Guard:
    """The watchdog of one run of dl-apply."""

    def __init__(
        self, directory: Path, run: ApplyRun, addresses: Sequence[Address], patience_s: float
    ) -> None:
        """`directory` holds the state; at `addresses` are the engines; `patience_s` is the longest
        time for which the run may wait in silence."""
        self._words = (
            str(directory),
            str(run.pid),
            str(run.began),
            str(patience_s + _HANGS_S),
            *map(address_word, addresses),
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    @property
    def is_watching(self) -> bool:
        """Whether a watchdog has been started."""
        return self._process is not None

    def watch(self, still_s: float) -> None:
        """See that a watchdog runs, and tell it that this run may be stopped for so long (s). It is
        in a session of its own: what is sent to the whole pipe does not reach it."""
        from dltools.apply.locks import WATCHDOG

        if self._process is not None:
            if self._process.poll() is None and self._say(beat(still_s)):
                return
            os.close(self._pipe)
        theirs, self._pipe = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", WATCHDOG, *self._words],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        os.close(theirs)
        os.set_blocking(self._pipe, False)
        self._say(beat(still_s))

    def beat(self, still_s: float) -> None:
        """Say that the run is alive and may be stopped for so long (s); start another watchdog if
        that has died."""
        if self._process is not None and not self._say(beat(still_s)):
            self.watch(still_s)

    def leave(self) -> None:
        """Let the watchdog go on until the leases are over that this run leaves behind."""
        self.watch(0.0)
        self._say(LEASES)
        os.close(self._pipe)
        self._process = None

    def dismiss(self) -> None:
        """Let the watchdog end: the run ends in order."""
        if self._process is None:
            return
        self._say(FAREWELL)
        os.close(self._pipe)
        try:
            self._process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:  # somebody has stopped it
            self._process.kill()
            self._process.wait()
        self._process = None

    def _say(self, word: bytes) -> bool:
        """Tell whether the watchdog is there to hear a word."""
        try:
            os.write(self._pipe, word)
        except BlockingIOError:  # it is stopped, and has enough to read
            return True
        except OSError:
            return False
        return True


FAREWELL = b"q"
LEASES = b"l"
"""Farewell of a run that leaves leases behind."""

_LOCK_TRIES, _BETWEEN_S = 40, 0.25
_PATIENCE_S = 3600.0
_ANSWER_S = 2.0
_LOOK_S = 0.5
_LEASES_LOOK_S = 20.0


class End(Enum):
    """How a run has ended."""

    IN_ORDER = auto()
    WITH_LEASES = auto()
    DEAD = auto()


def beat(still_s: float) -> bytes:
    """Return the word by which a run says that it is alive, and how long it may be stopped (s)."""
    return f"{still_s:g}\n".encode()


def watch(pipe: int, run: ApplyRun, silence_s: float) -> End:
    """Wait for the end of a run, and tell how it ended."""
    heard, still_s, stopped_at, said = time.monotonic(), math.inf, math.inf, b""
    while (now := time.monotonic()) - heard < silence_s and now - stopped_at < still_s:
        if select.select([pipe], [], [], min(_LOOK_S, silence_s))[0]:
            data = os.read(pipe, 1 << 12)
            said += data
            if FAREWELL in said or LEASES in said:
                return End.IN_ORDER if FAREWELL in said else End.WITH_LEASES
            if not data:
                return End.DEAD
            *words, said = said.split(b"\n")
            still_s = float(words[-1]) if words else still_s
            heard = time.monotonic()
        stopped_at = min(stopped_at, time.monotonic()) if run.is_stopped else math.inf
    if run.is_alive:
        with suppress(OSError):
            if run.is_stopped:
                stopped_s = max(0.0, now - stopped_at)
                _tell(
                    run,
                    f"dl-apply: the run was stopped for {stopped_s:.0f} s: ending it, "
                    "unpausing its containers and undoing its settings",
                )
            os.kill(run.pid, signal.SIGKILL)
    return End.DEAD


def _tell(run: ApplyRun, line: str) -> None:
    """Write a line where the run's own messages go. Raises OSError where nobody reads them."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK
    handle = os.open(f"/proc/{run.pid}/fd/2", flags)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


def outlive_leases(directory: Path, addresses: Sequence[Address]) -> None:
    """Wait until the leases are over that runs have left behind, and undo what was under them,
    unless another watchdog does. Later runs put off their end."""
    from dltools.apply.original_settings import timestamp
    from dltools.engine.journal import Journal
    from dltools.whole_files import locked

    words = " ".join(address_word(address) for address in addresses)
    lock = directory / f"leases-{zlib.crc32(words.encode()):08x}.lock"
    journal, tried = Journal(directory / "journal"), ""
    with suppress(RetryError):
        while journal.next_end() > tried:
            with locked(lock, "watchdog"):
                while (end := journal.next_end()) > tried:
                    if end > timestamp(_LEASES_LOOK_S):
                        time.sleep(_LEASES_LOOK_S)
                    elif end > timestamp():
                        time.sleep(_BETWEEN_S)
                    elif release(directory, addresses):
                        tried = end


def release(directory: Path, addresses: Sequence[Address]) -> bool:
    """Undo what is under a lease that is over on some engines. Waits for one that is away, while
    other runs may go on, unless the directory is removed: then nothing is on record. Tell whether
    no other run was in the way."""
    from dltools.apply.locks import locked_state

    ends, tries, left = time.monotonic() + _PATIENCE_S, _LOCK_TRIES, list(addresses)
    while left and tries and time.monotonic() < ends and directory.exists():
        try:
            with locked_state(directory) as state:
                # One that hangs holds up none.
                done = in_threads(partial(_is_released, state), left, len(left))
                left = [address for address, is_done in zip(left, done, strict=True) if not is_done]
            tries = _LOCK_TRIES
        except RetryError:
            tries -= 1
        if left:
            time.sleep(_BETWEEN_S)
    return bool(tries)


def _is_released(state: LockedState, address: Address) -> bool:
    """Undo what is under lease on one engine, and tell whether no more can be done there."""
    from dltools.apply.history import BY_LEASE, History
    from dltools.apply.undo import end_dead_leases, unpause_leftovers
    from dltools.engine.registry import open_engine

    try:
        engine = open_engine(address, patience_s=_ANSWER_S)
        state.settle()
        list(unpause_leftovers(engine, state.home / "rotation"))  # all of them
        ended = end_dead_leases(engine, state.home)
        History(state.home).note_undone(ended, BY_LEASE)
    except DltoolsError as error:  # nobody hears it; the next run tries again
        return not isinstance(error, UnavailableError)
    except Exception:  # an engine may answer anything, and must not keep the others from their undo
        return False
    return True


def address_word(address: Address) -> str:
    """Return an engine's address as an argument."""
    return f"context={address.name}" if address.settings else f"host={address.url}"


def _address(word: str) -> Address:
    kind, _, text = word.partition("=")
    return context_address(text) if kind == "context" else Address(text, "--host", name=text)


def main() -> None:
    """Watch the run of the arguments: state directory, process, its start, longest silence (s), and
    the addresses of its engines."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    directory, pid, began, silence_s, *words = sys.argv[1:]
    end = watch(0, ApplyRun(int(pid), int(began)), float(silence_s))
    addresses = [_address(word) for word in words]
    with suppress(DltoolsError):  # nobody hears it; the next run tries again
        if end is End.DEAD:
            release(Path(directory), addresses)
        if end is not End.IN_ORDER:
            outlive_leases(Path(directory), addresses)


if __name__ == "__main__":
    main()
