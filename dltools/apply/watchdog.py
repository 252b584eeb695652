"""A small process that outlives a killed dl-apply, and undoes what that held under lease.

Its standard input is a pipe from dl-apply. When that ends without a farewell, dl-apply has died;
when nothing comes for too long, dl-apply hangs, and is killed first. The process ends with its
purpose: when dl-apply has ended in order, when all is undone, or when another dl-apply has the
lock, which undoes the same when it begins.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dltools.engine.addresses import Address, context_address
from dltools.engine.runs import ApplyRun
from dltools.errors import DltoolsError, RetryError, UnavailableError

if TYPE_CHECKING:
    from dltools.apply.locked_state import LockedState

BEAT, FAREWELL = b".", b"q"

_LOCK_TRIES, _BETWEEN_S = 40, 0.25
_PATIENCE_S = 3600.0
_ANSWER_S = 2.0


def watch(pipe: int, run: ApplyRun, silence_s: float) -> bool:
    """Wait for the end of a run, and tell whether it ended in order."""
    while select.select([pipe], [], [], silence_s)[0]:
        said = os.read(pipe, 1 << 12)
        if FAREWELL in said:
            return True
        if not said:
            return False
    if run.is_alive:
        with suppress(OSError):
            os.kill(run.pid, signal.SIGKILL)
    return False


def release(directory: Path, addresses: Sequence[Address]) -> None:
    """Undo what a dead run held under lease on some engines. Waits for one that is away, while
    other runs may go on."""
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


def _is_released(state: LockedState, address: Address) -> bool:
    """Undo what is under lease on one engine, and tell whether no more can be done there."""
    from dltools.apply.dead_leases import end_dead_leases
    from dltools.apply.leftovers import unpause_leftovers
    from dltools.engine.connect import connect
    from dltools.engine.containers import Engine
    from dltools.engine.patience import Patient

    try:
        engine = Engine(Patient(connect(address), _ANSWER_S))
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
    if not watch(0, ApplyRun(int(pid), int(began)), float(silence_s)):
        with suppress(DltoolsError):  # nobody hears it; the next run tries again
            release(Path(directory), [_address(word) for word in words])


if __name__ == "__main__":
    main()
