"""Where dltools keeps its state: one place for a user, whatever starts the tools.

A shell, cron and systemd have different environments; what one run has changed, a run that another
of them starts must find. So root's place depends on nothing but on what is asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

SYSTEM = Path("/var/lib/dltools")
"""Root's place; systemd's StateDirectory=dltools is the same."""


def directory(asked: Path | None = None) -> Path:
    """Return where state is kept: the place asked for, else $XDG_STATE_HOME/dltools, else
    /var/lib/dltools for root and ~/.local/state/dltools for anybody else."""
    if asked is not None:
        return asked.absolute()
    base = os.environ.get("XDG_STATE_HOME") or ""
    if Path(base).is_absolute():
        return Path(base) / "dltools"
    return SYSTEM if os.geteuid() == 0 else _in_home()


def earlier(asked: Path | None = None) -> Path | None:
    """Return the place that root's state is to be brought from: dltools once kept it in the home
    directory. None where the place was asked for, or nothing has been left there."""
    home = _in_home()
    by_default = directory(asked) == SYSTEM and asked is None
    return home if by_default and home != SYSTEM and home.is_dir() else None


def all_directories(asked: Path | None = None) -> list[Path]:
    """Return every directory where state of this machine may be, the one in use first."""
    return list(dict.fromkeys((directory(asked), SYSTEM, _in_home())))


def _in_home() -> Path:
    return Path.home() / ".local" / "state" / "dltools"
