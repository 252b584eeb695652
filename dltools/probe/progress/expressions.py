"""Regular expressions of users: in labels of containers and in options.

Google's RE2 matches them in time linear in the text, so that no expression can stop a tool. Its
syntax is that of Perl without lookaround and backreferences; the Docker engine uses it too.
"""

from __future__ import annotations

import re
from typing import Any

from dltools.errors import ConfigError

LONGEST = 4_096
"""The most characters of an expression."""

_MEMORY = 1 << 20
"""Bytes that a compiled expression may take: one that repeats its repeats takes more."""

_NAME = re.compile(r"\(\?P?<(\w+)>")
_UNSUPPORTED = re.compile(r"\(\?(?:<?[=!]|>|P=|\()|\\[1-9]|[*+?}]\+")
_WHY = (
    "lookaround, backreferences, atomic groups and possessive repeats are not supported: write the "
    "context plainly, only named groups count"
)


def compiled(expression: str, what: str) -> Any:
    """Return a compiled expression, with the methods of those of `re`.

    Raises `ConfigError` if RE2 refuses it; `what` names the expression in the message.
    """
    import re2

    shown = f"{what} {expression[:80]!r}"
    if len(expression) > LONGEST:
        raise ConfigError(f"{shown}: longer than {LONGEST} characters")
    names = _NAME.findall(expression)
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{shown}: two groups are called {twice[0]}")
    options = re2.Options()
    options.max_mem, options.log_errors = _MEMORY, False
    try:
        return re2.compile(expression, options)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{shown}: not valid Unicode") from error
    except re2.error as error:
        raise ConfigError(f"{shown}: {_reason(expression, error)}") from error


def _reason(expression: str, error: Exception) -> str:
    """Return what is wrong with an expression."""
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    if _UNSUPPORTED.search(expression):
        return _WHY
    return f"{text} (see the syntax of RE2)"
