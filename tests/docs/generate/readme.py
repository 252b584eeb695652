"""The generated part of README: how each tool is called, and what it does."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from docs.generate.parsers import Tool


def parts(tools: Iterable[Tool]) -> dict[str, dict[str, str]]:
    """Return the help block."""
    lines = ["```text"]
    for tool in tools:
        summary = " ".join(tool.help.split("\n\n")[0].split())
        lines += [
            tool.usage,
            *textwrap.wrap(summary, 76, initial_indent="    ", subsequent_indent="    "),
        ]
    return {"README.md": {"help": "\n".join([*lines, "```"])}}
