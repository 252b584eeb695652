"""What `make docs` writes: parts of man pages and completions from parsers and tables."""

from pathlib import Path

from docs.generate import bash, fish, pages, zsh
from docs.generate.marked import filled
from docs.generate.parsers import tools

ROOT = Path(__file__).parents[3]


def documents() -> dict[Path, str]:
    """Return what each file with generated parts should hold; nothing is written."""
    found = tools()
    parts = {**pages.parts(found), **bash.parts(found), **zsh.parts(found), **fish.parts(found)}
    return {
        ROOT / name: filled(name, (ROOT / name).read_text(), bodies)
        for name, bodies in parts.items()
    }
