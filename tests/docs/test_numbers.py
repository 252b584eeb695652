"""What was measured stands once: in docs/numbers.md, or in a table that a command writes.

What people set or promise is whole ("10 s", "90 %"); what was measured has a decimal point and a
unit. So a figure is a decimal number with a unit, outside code and generated parts; `SET` are those
that somebody has set.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBERS = ROOT / "docs/numbers.md"
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "SECURITY", "CHANGELOG")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "man").iterdir()),
]
TABLES = [NUMBERS, *sorted((ROOT / "samples").glob("*/*.md"))]

_LATEST = {"1.2 times": "by when a job of known length must end"}

SET = {
    "README.md": _LATEST,
    "ARCHITECTURE.md": _LATEST,
    "CHANGELOG.md": _LATEST,
    "dltools-modes.7": {**_LATEST, "0.5 %": "what an order may lose"},
    "SECURITY.md": {"0.5 s": "how long an endpoint may take"},
    "dl-apply.1": {"1.5 s": "until a container in its turn sleeps"},
    "dl-sim.1": {"0.16 s": "the model's cost of a turn", "0.1 s": "the model's delay"},
}

_UNIT = r"(?:µs|ms|s|min|minutes?|seconds?|hours?|%|times|KiB|MiB|GiB|KB|MB|GB)"
_FIGURE = re.compile(rf"(?<![\w.,-])(\d[\d,]*\.\d+(?: to \d[\d,.]*\d)?) ({_UNIT})(?![\w/])")
_HIDDEN = (
    re.compile(r"^```.*?^```$", re.M | re.S),
    re.compile(r"^\.Bd .*?^\.Ed$", re.M | re.S),
    re.compile(r'^(?:\.\\"|<!--) generated:.*?^(?:\.\\"|<!--) end', re.M | re.S),
    re.compile(r"^.*\[(?:paper|code)\].*$", re.M),  # what the papers say of themselves
)


def figures(text: str) -> set[str]:
    """Return the figures of a page, as `0.16 s`."""
    for hidden in _HIDDEN:
        text = hidden.sub("", text)
    return {f"{number} {unit}" for number, unit in _FIGURE.findall(text)}


@pytest.mark.parametrize("page", [page for page in PAGES if page != NUMBERS], ids=lambda p: p.name)
def test_a_measurement_stands_in_no_other_page(page: Path) -> None:
    assert figures(page.read_text()) == SET.get(page.name, {}).keys(), "see docs/numbers.md"


def test_no_table_repeats_what_another_measured() -> None:
    # Figures of one or two digits, as 0.16 s, are equal by chance.
    told = {page: {one for one in figures(page.read_text()) if re.search(r"[1-9][\d.]{3}", one)}
            for page in TABLES}  # fmt: skip
    assert len(told[NUMBERS]) > 10
    for one, other in combinations(TABLES, 2):
        both = told[one] & told[other]
        assert not both, f"{one}, {other}: {both}"
