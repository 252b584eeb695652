"""Names the numbers of a line as a person does: by the nearest words that are a metric's; called by
`named`.

Three ways: names in a row for numbers in a row, `loss, acc ===> 0.5, 0.9`; names in brackets behind
what they are of, `Losses(policy: 2.5, value: 0.7)`; and, where nothing else in a line is read, the
words before a fraction, `RMSE on the test set after epoch 3 equals 0.5`.
"""

from __future__ import annotations

import re

from dltools.observations.metric_names import is_metric, normal_name
from dltools.probe.progress.base import Regex
from dltools.probe.progress.tokens import COUNTERS, NUMBER, NameKind, Token, name_kind

_NUMBER = Regex(
    rf"(?<![\w.@$])(?<!\w-)(?<!\d:)(?<![A-Za-z_]/)((?<!-){NUMBER}|(?<=-){NUMBER})"
    r"(?:\s?(%)(?!\|))?(?!\s?%|\w|\.\w|:\d|-\w|/[A-Za-z])",
    re.IGNORECASE,
)
_FRACTION = Regex(r"\.\d|[einy]", re.IGNORECASE)
_LETTER = Regex(r"[^\W\d_]")
_DELIMITED = Regex(r"[:=(|<{>,]\s*$")
_WORD = Regex(r"[^\W\d][\w@]*(?:-\d+)?")
_LOOK_BACK, _LONGEST = 100, 200

_ROW = Regex(
    rf"(?<![\w.@-]){NUMBER}\s?%?['\"\]\s]{{0,3}}([,;/|&]|and\s)[\s\['\"]{{0,3}}{NUMBER}(?!\w)"
    rf"(?:\s?%?['\"\]\s]{{0,3}}\1[\s\['\"]{{0,3}}{NUMBER}(?!\w)){{0,7}}(?:\s?%)?",
    re.IGNORECASE,
)
_NAME = r"([^\W\d][\w@.-]*+(?: [^\W\d][\w@.-]*+){0,2}+)"
_FIRST = Regex(
    rf"(?:([^\W\d][\w@-]*+)\s?[(\[]\s?)?(?<![\w@.-]){_NAME}(?:[(\[][^()\[\]]*[)\]])?\W{{0,3}}$"
)
_NEXT = Regex(rf"\W{{0,4}}(){_NAME}(?:[(\[].*|\W*)")
"""Numbers in a row; the name for the first, perhaps in brackets behind what it is of, and those for
the others."""

_SHARES = Regex(
    r"mean|median|avg|average|min|max|std|train(?:ing)?|val(?:id(?:ation)?)?|test", re.IGNORECASE
)
"""A name in a row that is one with the last word of the last: `mean/median reward 2.5/2.0`."""

_ABOUT = Regex(
    r"[\W\d]*|\W{0,3}(?:epoch|step|iter(?:ation)?|episode|round|on|of|over|in|at|after|per|during|by"
    r"|for(?= (?:the |all |each )?(?:epoch|step|iter|batch|train|val|test|set|model|data|\d))"
    r"|across|so|train|val(?:id|idation|ue)?|test|estimate|set)\b"
    r"(?!.*\b(?:from|than|not|time|scale|weight|factor|rate)\b)[^:=,;|]{0,60}[:=]?\W*"
    r"|/[^\s\d]\S{0,80}\s?[:=]?\s*|\s(?:is|was|equals)\s?(?:equal to\s)?\W*",
    re.IGNORECASE,
)
"""What may stand between a name and its value: of what, and when."""

_OF_TRAINING = Regex(rf"\b(?:{'|'.join(COUNTERS)}|val|test|train)| at ", re.IGNORECASE)
"""What shows that a usual word with others behind it is a metric: `error after 3 epochs: 0.5`."""

_PART = Regex(r"\W{0,5}([^\W\d][\w@/-]{0,40})\W{0,4}")
_PARTS = Regex(r"\W{0,3}[:({\[|-]\W{0,3}$")
"""A part of what the word before it says, and what stands before it: `Losses: box 0.5, cls 0.2`."""

_BEHIND = Regex(
    r"\s?%?\s(?:\s{0,20}=\s)?\(?([A-Za-z_][\w@ -]{0,40}?)"
    r"(?=\s(?:estimate|after|over|on|at)\s|\s{0,9}(?:\([^()=]{1,40}\)\s{0,9})?(?:[,|);]|$))"
)
"""A name behind its number: `1.52 loss, 91.2% accuracy`."""

_COUNTED = Regex(r"\b(train|valid?|test) \d\d{1,8} $", re.IGNORECASE)
"""A phase and a counter before a loss, as DARTS prints: `train 050 6.5e+00 0.1 0.5`."""

_COUNTER = Regex(r"([^\W\d]\w*)[\s(\[{<#:=]{1,3}$")
_AT = Regex(r"(?:\b(?:at|after|train|valid?|test)\s|(?<!% )[\[({#])$", re.IGNORECASE)
"""What stands before a counter that has no name, and is no share: `69.2% (6922 / 10000)`."""

_LONGEST_AT = 12
"""Characters before a counter in which that may stand."""

_STEM = r"(loss|accurac|error|score|reward|metric)(?:e?s|y|ies)?"
_ENCLOSING = Regex(rf"(?<![\w.])({_STEM})['\"]?\s?[:=]?\s?[({{\[]", re.IGNORECASE)
_SINGLE = Regex(_STEM, re.IGNORECASE)
_CLOSING = {"(": ")", "{": "}", "[": "]"}
_WHOLE = {"accurac": "accuracy", "metric": "score"}


def listed(line: str, tokens: list[Token]) -> list[Token]:
    """Return the tokens; numbers in a row get the names that stand in a row before them, `(step,
    loss) = (3, 0.5)`."""
    for match in _ROW.finditer(line):
        row = _row(line[max(0, match.start() - _LONGEST) : match.start()], match)
        if any(name_kind(token.name) > NameKind.OTHER for token in row):
            start = row[0].start
            kept = [token for token in tokens if token.end <= start or token.start >= match.end()]
            tokens = sorted([*kept, *row], key=lambda token: token.start)
    return tokens


def _row(before: str, match: re.Match[str]) -> list[Token]:
    """Return the tokens of numbers in a row, none if there is not a name for each in the text
    before."""
    numbers = [*_NUMBER.finditer(match.string, *match.span())]
    first, *others = parts = before.split(match[1].strip())[-len(numbers) :]
    names = [_FIRST.search(first), *map(_NEXT.fullmatch, others)]
    if len(parts) != len(numbers) or None in names:
        return []
    is_apart = match[1] == "/" or any(map("=:>([".__contains__, parts[-1][names[-1].end(2) :]))
    of = names[0][1] if name_kind(names[0][1] or "") >= NameKind.WEAK else ""
    last = names[-1][2].rpartition(" ")
    tokens, start = [], match.start() - len(before) + before.rfind(match[1].strip().join(parts))
    for part, name, number in zip(parts, names, numbers, strict=True):
        said = f"{of} {name[2]}".strip()
        if _SHARES.fullmatch(said):
            is_apart = is_apart and (match[1] == "," or bool(last[0]))
            said = f"{said} {last[2]}" if last[0] else said
        if len(said) == 1 and name_kind(said) is NameKind.OTHER and number[1].isdigit():
            said = "step"
        tokens.append(_token(said, ":", number, start + name.start(2)))
        start += len(part) + len(match[1].strip())
    return tokens if is_apart else []


def _token(name: str, delimiter: str, of: re.Match[str], start: int) -> Token:
    return Token(name, delimiter, of[1], "", "", bool(of[2]), start, of.end(), of.span(1))


def enclosed(line: str, tokens: list[Token]) -> list[Token]:
    """Return the tokens; those in brackets behind the word of a metric are of it,
    `Losses(policy: 2.5)`."""
    for head in _ENCLOSING.finditer(line) if "(" in line or "{" in line else ():
        end = line.find(_CLOSING[head[0][-1]], head.end()) % (len(line) + 1)
        for at, one in enumerate(tokens):
            is_inside = head.end() <= one.start < end and name_kind(one.name) is NameKind.OTHER
            if is_inside and _may_be_part(one.name):
                tokens[at] = one._replace(name=_of_part(one.name, head[1]))
    return tokens


def _of_part(part: str, word: str) -> str:
    if match := _SINGLE.fullmatch(word) if part else None:
        stem = match[1].lower()
        word = _WHOLE.get(stem, stem)
    return f"{part}_{word}" if part else word


def _may_be_part(name: str) -> bool:
    return is_metric(normal_name(name)) or name in ("epoch", "batch")


def nearest(line: str) -> list[Token]:
    """Return the fractions of a line by the nearest words before each that are a metric's, and the
    counters between them, but for a row of a table."""
    tokens: list[Token] = []
    head, low, previous = "", 0, 0
    for number in _NUMBER.finditer(line) if line.lstrip()[:1] != "|" else ():
        text, previous = line[previous : number.start()], number.end()
        if not (_FRACTION.search(number[1]) or number[2]):
            word = match[1] if (match := _COUNTER.search(text)) else ""
            at = max(0, number.start() - _LONGEST_AT), number.start()
            if name_kind(word) is not NameKind.OTHER or _AT.search(line, *at):  # `loss 64000: 0.3`
                name = word if 0 < name_kind(word) < NameKind.BESIDE else "step"
                tokens.append(_token(name, ":", number, number.start()))
            continue
        if (behind := _BEHIND.match(line, number.end(1))) and name_kind(behind[1]) >= NameKind.WEAK:
            tokens.append(_token(behind[1], " ", number, number.start()))
            low = behind.end()
            continue
        word, start, part = _said(line, low, number.start())
        if not word and (counted := _COUNTED.search(line, low, number.start())):
            word, start = f"{counted[1]}_loss", counted.start()
        if not word and head and (match := _PART.fullmatch(text)) and _may_be_part(match[1]):
            word, start, part = head, number.start() - 1, match[1]
        if word:
            delimiter = ":" if part or _DELIMITED.search(text) else ","
            tokens.append(_token(_of_part(part, word), delimiter, number, start))
            head = word if part else ""
        low = number.end()
    return sorted(tokens, key=lambda token: token.start)


def _said(line: str, low: int, high: int) -> tuple[str, int, str]:
    """Return the word of a metric in the text between two places, where it begins, and of which
    part of it the text is, "" for none."""
    words = [*_WORD.finditer(line, max(low, high - _LOOK_BACK), high)]
    for at, word in reversed([*enumerate(words)]):
        before = words[at - 1][0] if at else ""
        is_pair = name_kind(before) < NameKind.BESIDE <= name_kind(f"{before} {word[0]}")
        if "@" in word[0] and line[word.end() : word.end() + 1] == ".":
            break  # a threshold: `AP@0.70, 0.50, 0.50`
        if word[0] == "per" or not (is_pair or name_kind(word[0]) >= NameKind.WEAK):
            continue
        is_usual = name_kind(word[0]) is NameKind.WEAK and _LETTER.search(line, word.end(), high)
        if is_usual and not _OF_TRAINING.search(line):
            break
        if _ABOUT.fullmatch(line, word.end(), high):
            return word[0], word.start(), ""
        part = words[-1]
        apart = _PARTS.search(line, word.end(), part.start())
        is_part = apart and not _LETTER.search(line, part.end(), high) and _may_be_part(part[0])
        if is_part and _ABOUT.fullmatch(line, word.end(), apart.start()):
            return word[0], word.start(), part[0]
        break
    return "", 0, ""
