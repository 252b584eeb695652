"""A small process that outlives a killed dl-apply, and undoes what that held under lease.

Its standard input is a pipe from dl-apply. When that ends without a farewell, dl-apply has died;
when nothing comes for too long, dl-apply hangs, and is killed first. So is one that was stopped, as
by Ctrl-Z, for longer than its last word allows: jobs must not wait for somebody who sends SIGCONT,
and one that went on would not know what was undone.

Where dl-apply ends in order and leaves leases behind, the process waits for their end, one for all
runs of a state directory.

The process ends with its purpose: when dl-apply has ended in order, when all is undone, or when
another dl-apply has the lock, which undoes the same when it begins.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.engine.docker.addresses import Address, context_address
from dltools.engine.runs import ApplyRun
from dltools.errors import DltoolsError, RetryError, UnavailableError

if TYPE_CHECKING:
    from dltools.apply.locked_state import LockedState

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
                    f"dl-apply: it was stopped for {stopped_s:.0f} s, and is ended now: "
                    "what it had paused goes on, what it held is undone",
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
    from dltools.apply.journal import Journal, timestamp
    from dltools.files import locked

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
    other runs may go on. Tell whether no other run was in the way."""
    from dltools.apply.locked_state import locked_state

    ends, tries, left = time.monotonic() + _PATIENCE_S, _LOCK_TRIES, list(addresses)
    while left and tries and time.monotonic() < ends:
        try:
            with locked_state(directory) as state, ThreadPoolExecutor(len(left)) as pool:
                done = pool.map(partial(_is_released, state), left)  # one that hangs holds up none
                left = [one for one, is_done in zip(left, done, strict=True) if not is_done]
            tries = _LOCK_TRIES
        except RetryError:
            tries -= 1
        if left:
            time.sleep(_BETWEEN_S)
    return bool(tries)


def _is_released(state: LockedState, address: Address) -> bool:
    """Undo what is under lease on one engine, and tell whether no more can be done there."""
    from dltools.apply.dead_leases import end_dead_leases
    from dltools.apply.leftovers import unpause_leftovers
    from dltools.engine.members.opening import open_engine

    try:
        engine = open_engine(address, patience_s=_ANSWER_S)
        state.settle()
        for _ in unpause_leftovers(engine, state.home / "rotation"):
            pass
        end_dead_leases(engine, state.home)
    except UnavailableError:
        return False
    except DltoolsError:  # nobody hears it; the next run tries again
        return True
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
