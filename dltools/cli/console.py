"""The console that tables are printed on, and whether it has colours."""

from __future__ import annotations

import os
from typing import Any

from dltools.text import printable_lines


def wants_colour() -> bool | None:
    """Tell whether the user wants colour, by NO_COLOR and FORCE_COLOR; None: on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def make_console(file: Any = None) -> Any:
    """Return a rich console that obeys NO_COLOR, FORCE_COLOR and COLUMNS, and prints no escape
    sequence of a text."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich itself would exit with 1

        def render_str(self, text: str, **how: Any) -> Any:
            return super().render_str(printable_lines(text), **how)

    wanted = wants_colour()
    return _Console(
        file=file,
        no_color=wanted is False,
        force_terminal=True if wanted else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
