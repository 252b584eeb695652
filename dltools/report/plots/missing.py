"""How a package is added to the Python that dltools runs in, which depends on who made it."""

from __future__ import annotations

import shlex
from pathlib import Path

_GLOBAL_PIPX = "/opt/pipx"


def command_to_add(package: str, prefix: Path) -> str:
    """Return the command that adds a package to the environment in `prefix` (sys.prefix): one of
    pipx, of uv, or any other.

    Of uv's it is not `uv tool install --with`: that would look up the name dltools in an index,
    where another project may have it.
    """
    if (prefix / "pipx_metadata.json").exists():
        option = " --global" if prefix.is_relative_to(_GLOBAL_PIPX) else ""
        return f"pipx inject{option} {shlex.quote(prefix.name)} {package}"
    place = shlex.quote(str(prefix))
    if (prefix / "uv-receipt.toml").exists():
        return f"uv pip install --python {place} {package}"
    return f"{place}/bin/python3 -m pip install {package}"
