"""Where dltools keeps its state: one directory for each user, whatever starts the tools.

A shell, cron and systemd have different environments, and a run that one of them starts must find
what another run has changed. So root's directory depends only on the option.
"""

from __future__ import annotations

import os
from pathlib import Path

SYSTEM = Path("/var/lib/dltools")
"""Root's directory; systemd's StateDirectory=dltools is the same."""


def directory(asked: Path | None = None) -> Path:
    """Return where state is kept: the directory asked for, else $XDG_STATE_HOME/dltools, else
    /var/lib/dltools for root and ~/.local/state/dltools for other users."""
    if asked is not None:
        return asked.absolute()
    base = os.environ.get("XDG_STATE_HOME") or ""
    if Path(base).is_absolute():
        return Path(base) / "dltools"
    return SYSTEM if os.geteuid() == 0 else _in_home()


def all_directories(asked: Path | None = None) -> list[Path]:
    """Return every directory where state of this machine may be, the one in use first."""
    return list(dict.fromkeys((directory(asked), SYSTEM, _in_home())))


def _in_home() -> Path:
    return Path.home() / ".local" / "state" / "dltools"
