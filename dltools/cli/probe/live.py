"""The live table: a row per container, redrawn in place with each sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.console import RenderableType

from dltools.cli.console import make_console
from dltools.cli.probe.live_view import live_view
from dltools.cli.probe.observed import ObservedHosts
from dltools.cli.screen import Screen

if TYPE_CHECKING:
    import pyarrow as pa


class LiveTable:
    """Draws samples on the terminal; the last drawing stays when it is closed."""

    def __init__(self) -> None:
        """Nothing is drawn before the first sample."""
        self._console = make_console()
        self._hosts = ObservedHosts()
        self._screen = Screen(self._console, self._view)

    def __enter__(self) -> Self:
        """Take the terminal."""
        self._screen.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        self._screen.close()

    def write(self, table: pa.Table) -> None:
        """Redraw the table with one more sample."""
        self._hosts.take(table.to_pylist())
        self._screen.draw()

    def wait(self, seconds: float) -> bool:
        """Wait for the next sample, and redraw where the screen changes; tell whether to quit."""
        return self._screen.wait(seconds)

    def close(self) -> None:
        """Leave the last drawing on the screen."""

    def _view(self) -> RenderableType | None:
        return live_view(self._hosts, self._console) if self._hosts.is_sampled else None
