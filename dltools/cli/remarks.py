"""Remarks on standard error: why there was nothing to do, and what else a person may want to know.

They are no warnings: --quiet leaves them out. In a pipe of the tools the last one makes them: a
tool whose output goes into a pipe leaves it to the reader, which a plan tells why it is empty.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from dltools.cli.exits import print_message

_NUMBER = re.compile(r"(?<!\S)\d+(\.\d+)?(?!\S)")
"""A number that stands alone, as a measured one does, and not in a name."""

_SEARCHED_BY_SUDO = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

_Item = TypeVar("_Item")

_quiet = False


def be_quiet(value: bool) -> bool:
    """Take note of --quiet, for this run."""
    global _quiet
    _quiet = value
    return value


def print_remark(remark: str) -> None:
    """Print a remark, unless --quiet was given."""
    if not _quiet:
        print_message(remark)


def tracked(what: str, items: Iterable[_Item], total: int) -> Iterable[_Item]:
    """Return items; while they are worked on, a terminal shows a bar that says how far this is."""
    if _quiet or not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, what, total, console=Console(stderr=True), transient=True)


def as_root(tool: str, *arguments: str) -> str:
    """Return the line that runs a tool as root: `sudo dl-probe --doctor`. The tool stands there by
    its path where sudo would not find it, as in the folder of pipx."""
    own = Path(sys.argv[0])
    place = str(own) if own.name == tool and own.is_absolute() else shutil.which(tool)
    is_found = place is None or str(Path(place).parent) in _SEARCHED_BY_SUDO
    return " ".join(("sudo", tool if is_found else str(place), *arguments))


def is_last_in_pipe() -> bool:
    """Tell whether no other tool reads standard output."""
    try:
        return not stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return True


STEADY_S = 10.0
"""How long a new reason stands until it is told (s): a stream begins with some that soon pass."""


class Remarks:
    """Remarks that are made again and again: the first is told at once, another when it has stood
    for a while. One that differs in its measured numbers alone is the same."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told = self._new = ""
        self._since = 0.0

    def tell(self, remark: str) -> None:
        """Print a remark that is new; "" is none, after which an earlier one is not new."""
        words, now = _NUMBER.sub("", remark), self._clock()
        if words != self._new:
            self._new, self._since = words, now
        is_steady = not self._told or now - self._since >= STEADY_S
        if remark and words != self._told and is_steady:
            self._told = words
            print_remark(remark)
