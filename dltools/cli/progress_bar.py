"""A bar on standard error that shows that long work lives.

It appears where the work takes longer than two seconds and standard error is a terminal, and goes
when the work is done; with --quiet there is none.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from dltools.cli.remarks import is_quiet

if TYPE_CHECKING:
    from rich.progress import Progress

_T = TypeVar("_T")

AFTER_S = 2.0
"""Seconds of work after which the bar appears."""


class ProgressBar:
    """The bar of one piece of work: `with ProgressBar("simulated", 20) as bar: bar.advance()`."""

    def __init__(self, what: str, total: float | None = None, after_s: float = AFTER_S) -> None:
        """`total` is in the units of `advance`, None where nobody knows it."""
        self._what, self._total, self._done = what, total, 0.0
        self._lock = threading.Lock()
        self._timer = threading.Timer(after_s, self._show)
        self._timer.daemon = True
        self._shown: Progress | None = None
        self._task: Any = None
        self._is_over = False

    def __enter__(self) -> Self:
        """Begin to count the time."""
        if not is_quiet() and _is_terminal(sys.stderr):
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        with self._lock:
            self._is_over = True
            self._timer.cancel()
            if self._shown is not None:
                self._shown.stop()

    def advance(self, amount: float = 1.0) -> None:
        """Say that so much more is done."""
        with self._lock:
            self._done += amount
            if self._shown is not None:
                self._shown.update(self._task, completed=self._done)

    def each(self, items: Iterable[_T]) -> Iterator[_T]:
        """Yield items, each of which is done when the next one is asked for."""
        for item in items:
            yield item
            self.advance()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        left = [TaskProgressColumn(), TimeRemainingColumn()] if self._total else []
        columns = (TextColumn("{task.description}"), BarColumn(), *left, TimeElapsedColumn())
        shown = Progress(*columns, console=Console(stderr=True), transient=True)
        with self._lock:
            if self._is_over:
                return
            self._task = shown.add_task(self._what, total=self._total)
            shown.update(self._task, completed=self._done)
            shown.start()
            self._shown = shown


def _is_terminal(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
