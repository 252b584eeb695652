"""Where dltools keeps its state: one directory for each user, whatever starts the tools.

A shell, cron and systemd have different environments, and a run that one of them starts must find
what another run has changed. So root's directory depends only on the option.
"""

from __future__ import annotations

import os
import stat
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


def earlier(asked: Path | None = None) -> Path | None:
    """Return the directory to bring root's state from: earlier versions kept it in the home
    directory. None if a directory was asked for, or if there is no such state of root's own: after
    sudo, the home directory may be another user's."""
    home = _in_home()
    by_default = directory(asked) == SYSTEM and asked is None
    return home if by_default and home != SYSTEM and _is_own(home) else None


def all_directories(asked: Path | None = None) -> list[Path]:
    """Return every directory where state of this machine may be, the one in use first."""
    return list(dict.fromkeys((directory(asked), SYSTEM, _in_home())))


def _is_own(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _in_home() -> Path:
    return Path.home() / ".local" / "state" / "dltools"
