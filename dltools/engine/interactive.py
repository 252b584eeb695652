"""Programs in which a person works: notebooks, editors and ssh servers, known by command lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

_PROGRAMS = frozenset(
    {
        "jupyter-lab",
        "jupyter-labhub",
        "jupyter-notebook",
        "jupyter-server",
        "jupyterhub-singleuser",
        "ipykernel_launcher",
        "start-notebook",
        "start-singleuser",
        "code-server",
        "openvscode-server",
        "rserver",
        "rstudio",
        "rstudio-server",
        "sshd",
    }
)
_JUPYTER = frozenset({"lab", "notebook", "server"})
"""What may follow the program `jupyter`."""

_SHELLS = frozenset({"ash", "bash", "busybox", "dash", "sh", "zsh"})
_STARTERS = frozenset(
    {"docker-init", "dumb-init", "env", "exec", "node", "nohup", "start", "sudo", "tini"}
)
"""Programs whose first argument that is no option is the program that counts."""

_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_ENDING = re.compile(r"\.(py|sh)$")
_VARIABLE = re.compile(r"\w+=")
_SEPARATOR = re.compile(r"[;&|\n]+")
_MOST_WORDS = 32


def interactive_program(words: Sequence[str]) -> str:
    """Return the name of the interactive program that a command line starts, "" if it starts none.

    A name among the arguments of another program does not count. Of a shell's script each simple
    command does.
    """
    rest = islice(words, _MOST_WORDS)
    is_shell = False
    for word in rest:
        if is_shell and _is_script_option(word):
            return _in_script(next(rest, ""))
        if word.startswith("-") or _VARIABLE.match(word):
            continue
        name = _name(word)
        if name in _PROGRAMS:
            return name
        if name == "jupyter":
            kind = next((one for one in rest if not one.startswith("-")), "")
            return f"jupyter-{kind}" if kind in _JUPYTER else ""
        is_shell = name in _SHELLS
        if not (is_shell or name in _STARTERS or _PYTHON.fullmatch(name)):
            return ""
    return ""


def _is_script_option(word: str) -> bool:
    """Tell whether a shell's option says that the next word is a script: -c, -lc, -ec."""
    return word.startswith("-") and not word.startswith("--") and word.endswith("c")


def _in_script(script: str) -> str:
    for command in _SEPARATOR.split(script):
        if found := interactive_program([word.strip("\"'") for word in command.split()]):
            return found
    return ""


def _name(word: str) -> str:
    """Return a program's name: of a path the last part; a server's title begins with "sshd: "."""
    words = word.split(maxsplit=1)
    first = words[0].rstrip(":") if words else ""
    return _ENDING.sub("", first.rpartition("/")[2])
