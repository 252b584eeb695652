"""Generated parts of a document stand between two lines: `generated: NAME` and `end`.

Each line is a comment of its document: `.\\" ` in man pages, `# ` in scripts, `<!-- -->` in
Markdown. Everything else is written by hand and never touched.
"""

import re
from collections.abc import Mapping

_PART = re.compile(
    r'^(?P<open>[ ]*(?:\.\\" |# |<!-- )generated: (?P<name>[\w -]+?)(?: -->)?\n)'
    r".*?"
    r'(?P<end>^[ ]*(?:\.\\" end|# end|<!-- end -->)\n)',
    re.MULTILINE | re.DOTALL,
)


def filled(document: str, text: str, bodies: Mapping[str, str]) -> str:
    """Return a document with its generated parts replaced by `bodies`, each as its marker is
    indented. Raises `ValueError` where the markers and the bodies do not match."""
    seen: list[str] = []

    def replace(part: re.Match[str]) -> str:
        seen.append(part["name"])
        if part["name"] not in bodies:
            return part[0]
        indent = part["open"][: len(part["open"]) - len(part["open"].lstrip())]
        lines = bodies[part["name"]].splitlines()
        body = "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)
        return part["open"] + body + part["end"]

    made = _PART.sub(replace, text)
    if lacking := set(bodies) - set(seen):
        raise ValueError(f"{document}: no line says `generated: {sorted(lacking)[0]}`")
    if unknown := set(seen) - set(bodies):
        raise ValueError(f"{document}: nothing fills `generated: {sorted(unknown)[0]}`")
    return made
