"""A bar on standard error that shows that long work lives.

It appears where the work takes longer than two seconds and standard error is a terminal, and goes
when the work is done; with --quiet there is none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dltools.cli.remarks import is_quiet

if TYPE_CHECKING:
    from rich.progress import Progress

_T = TypeVar("_T")

AFTER_S = 2.0
"""Seconds of work after which the bar appears."""


class ProgressBar:
    """The bar of one piece of work: `with ProgressBar("simulated", 20) as bar: bar.advance()`."""

    def __init__(self, what: str, total: int, after_s: float = AFTER_S) -> None:
        """`total` is how often it advances."""
        self._what, self._total, self._done = what, total, 0
        self._appears = time.monotonic() + after_s
        self._shown: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        """Nothing is shown yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self._shown is not None:
            self._shown.stop()

    def advance(self) -> None:
        """Say that one more part is done."""
        self._done += 1
        if self._shown is not None:
            self._shown.update(self._task, completed=self._done)
        elif time.monotonic() > self._appears and not is_quiet() and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._shown = Progress(console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task(self._what, total=self._total, completed=self._done)
            self._shown.start()

    def each(self, items: Iterable[_T]) -> Iterator[_T]:
        """Yield items, each of which is done when the next one is asked for."""
        for item in items:
            yield item
            self.advance()
