"""Names and values in a line: `loss: 0.5`, `loss=tensor(0.5, ...)`, `epoch [3/10]`, `step:31K`.

One expression finds every name beside a number, with all that programs put between: a colon, an
equals sign, an arrow, `is`, a blank. What a name means is for others to say. The time is linear in
the line's length.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dltools.probe.progress.base import Regex


class Token(NamedTuple):
    """A name and a number beside it.

    `text` is the number as printed, `total` what stands after a slash (`3/10`), `scale` a suffix of
    thousands, `delimiter` what stands between ("" for blanks), `start` and `end` the place in the
    line, `value` that of the number.
    """

    name: str
    delimiter: str
    text: str
    total: str
    scale: str
    is_percent: bool
    start: int
    end: int
    value: tuple[int, int]


_NUMBER = (
    r"[-+]?(?>(?:\d{1,3}(?:,\d{3})++(?![\d])|\d++)(?:\.\d*+)?(?:[eE][-+]?\d++)?"
    r"|\.\d++(?:[eE][-+]?\d++)?|nan|inf(?:inity)?)"
)
_TOKEN = Regex(
    r"(?<![\w./@\\-])([A-Za-z_][\w./@+-]*+"  # the name, and a unit or a phase in parentheses
    r"(?: ?[(\[][A-Za-z%@][\w%@ ./-]{0,19}[)\]])?)"
    r"(?:['\"*`]{0,2}\s{0,20}(:=|[:=]=?>?|-+>|\u2192)\s{0,20}|\s(is|was|of)\s"
    r"|(?<!\.)\s{1,20}(?:#|No\. ?)?)"
    r"['\"*`]{0,2}(?:<tf\.Tensor:[^>]{0,80}numpy=)?"
    r"(?:[A-Za-z_][\w.]{0,30}[(\[]|[(\[#])?[(\[]{0,2}\s{0,4}"
    rf"({_NUMBER})(?:\s?(/)\s{{0,6}}(\d++(?:\.\d++)?)|\s?(%)(?!\|)|([kKMGB])(?=[\s,;|\])}}]|$))?"
    r"(?![\w]|:\d|/\w|\.\w|,\d|%\|)",
    re.IGNORECASE,
)


def tokens(line: str) -> list[Token]:
    """Return the names with numbers beside them, in order."""
    return [
        Token(
            m[1],
            m[2] or m[3] or "",
            m[4],
            m[6] or "",
            m[8] or "",
            m[7] is not None,
            m.start(),
            m.end(),
            m.span(4),
        )
        for m in _TOKEN.finditer(line)
    ]


_BEFORE = Regex(
    rf"(?:^|[,|(])\s{{0,20}}(({_NUMBER})\s?(%)?\s(?:\s{{0,20}}=\s)?([A-Za-z_][\w@ -]{{0,40}}))"
    r"(?=\s{0,9}(?:\([^()=]{1,40}\)\s{0,9})?(?:[,|)]|$))",
    re.IGNORECASE,
)


def named_behind(line: str) -> list[Token]:
    """Return the numbers with a name behind them, `1.52 loss, 91.2% accuracy`, in order."""
    return [
        Token(m[4].strip(), " ", m[2], "", "", m[3] is not None, m.start(1), m.end(1), m.span(2))
        for m in _BEFORE.finditer(line)
    ]


_BOXED = Regex(
    r"[\u2502\u2503]\s{0,40}([A-Za-z][\w@/.%-]{0,40}(?: [\w@/.%()-]{1,40}){0,3})"
    rf"\s{{0,40}}[\u2502\u2503]\s{{0,40}}({_NUMBER})\s?(%)?\s{{0,40}}(?=[\u2502\u2503])",
    re.IGNORECASE,
)


def boxed(line: str) -> list[Token]:
    """Return the names with a number in the cell behind them, of a row of a table in a box."""
    if line.lstrip()[:1] not in ("\u2502", "\u2503"):
        return []
    return [
        Token(m[1], "|", m[2], "", "", m[3] is not None, m.start(1), m.end(), m.span(2))
        for m in _BOXED.finditer(line)
    ]


_PHASES = {"train": "train_loss", "val": "val_loss", "valid": "val_loss", "test": "test_loss"}


def losses_of_phases(found: list[Token]) -> list[Token]:
    """Return the tokens that are losses by the name of their phase alone, `train 0.31 val 0.35`, of
    a line without other metrics."""
    losses = [
        token._replace(name=_PHASES[token.name.lower()], delimiter=token.delimiter or " ")
        for token in found
        if token.name.lower() in _PHASES and "." in token.text and not token.is_percent
    ]
    return losses if len(losses) > 1 else []
