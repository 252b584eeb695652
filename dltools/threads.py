"""The one place where threads start, so that what hangs or waits holds up nothing else.

ARCHITECTURE.md says of each thread what it touches and when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread, Timer
from typing import TypeVar

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def in_background(work: Callable[..., object], *given: object) -> Thread:
    """Begin to do something, and return the thread that does it; it keeps no tool from ending."""
    thread = Thread(target=work, args=given, daemon=True)
    thread.start()
    return thread


@contextmanager
def if_late(seconds: float, work: Callable[..., object], *given: object) -> Iterator[None]:
    """Do something in the background if the block takes longer than that."""
    timer = Timer(seconds, work, given)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def in_threads(
    call: Callable[[_Item], _Answer], items: Sequence[_Item], most: int = 8
) -> list[_Answer]:
    """Return what a call returns for each item; at most so many calls are made at a time. Raises
    the first error when all have ended.

    The call for a single item is made in this thread, where a signal ends it. Of several, those
    that a signal finds under way go on, and hold up nothing but the end of the tool.
    """
    if len(items) < 2:
        return [call(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor, wait

    pool = ThreadPoolExecutor(most)
    try:
        begun = [pool.submit(call, item) for item in items]
        wait(begun)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return [future.result() for future in begun]
