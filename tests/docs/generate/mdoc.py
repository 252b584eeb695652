"""Plain text as mdoc: one sentence a line, options, tools and values in their macros."""

import re
import textwrap
from collections.abc import Collection

_WIDTH = 100
_PAGES = r"(?P<page>(?:dltools|dl)-[a-z]+)(?:\((?P<section>\d)\))?"
_WORD = re.compile(
    r"^(?P<before>[(]*)(?:(?P<option>--?[a-z][a-z-]*)|" + _PAGES + r"|(?P<value>[A-Z/|]+))"
    r"(?P<after>[,.;:)]*)$"
)
_SECTIONS = {
    "dltools-observations": "5",
    "dltools-plan": "5",
    "dltools-workload": "5",
    "dltools-policies": "7",
    "dltools-modes": "7",
    "dltools-cluster": "7",
    "dltools-engines": "7",
}


def paragraph(text: str, page: str, values: Collection[str] = ()) -> str:
    """Return a text as lines of mdoc, for `page`; `values` name an option's value."""
    lines: list[str] = []
    for sentence in re.split(
        r"(?<=[a-z0-9)\]'][.?]) +(?=[-A-Z0-9]|[a-z]+:)", " ".join(text.split())
    ):
        words: list[str] = []
        for word in sentence.split(" "):
            if macro := _macro(word, page, values):
                lines += _filled(words)
                lines.append(macro)
                words = []
            else:
                words.append(word)
        lines += _filled(words)
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Return a line of text that roff prints as it is."""
    text = text.replace("\\", "\\e")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def value(metavar: str) -> str:
    """Return the name of an option's value as arguments of It: NAME=VALUE as `Ar name Ns = ...`."""
    name, optional, _ = metavar.partition("[=")
    if optional:
        return f"Ar {name.lower()} Ns Op = Ns Ar value"
    parts = [part.lower() for part in metavar.split("=")]
    shown = " Ns = Ns ".join(f"Ar {part}" for part in parts)
    return shown.replace("|", " | ").replace("dir/", "dir Ns /")


def names_of(option: str) -> str:
    """Return an option as an argument of Fl: `-o` as `o`, `--output` as `\\-output`."""
    return option[1:].replace("-", "\\-", 1) if option.startswith("--") else option[1:]


def _filled(words: list[str]) -> list[str]:
    lines = textwrap.wrap(" ".join(words), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [escaped(line) for line in lines]


def _macro(word: str, page: str, values: Collection[str]) -> str:
    """Return the macro line of a word that has one, else ""."""
    found = _WORD.match(word)
    if not found:
        return ""
    if found["option"]:
        macro = f"Fl {names_of(found['option'])}"
    elif found["page"] == page:
        macro = "Nm"
    elif found["page"]:
        section = found["section"] or _SECTIONS.get(found["page"], "1")
        macro = f"Xr {found['page']} {section}"
    elif found["value"] in values:
        macro = f"Ar {found['value'].lower()}"
    else:
        return ""
    name, _, arguments = macro.partition(" ")
    words = [name, *found["before"], arguments, *found["after"]]
    return f".{' '.join(word for word in words if word)}"
