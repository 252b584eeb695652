"""README's picture and table, from the measurements in samples/live/RESULTS.md.

So a figure that is measured again stands in README as soon as `make docs` has run.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from dltools.report.plots.axes import run_colours

ROOT = Path(__file__).parents[3]
RESULTS = "samples/live/RESULTS.md"
PICTURE = "docs/three-jobs.svg"

ARMS = {"noop": "Docker alone", "flowcon": "flowcon (default)", "srtf": "srtf"}
"""The arms that README shows, with the name of each."""

_SPREAD = re.compile(r"([\d.]+)(?: \(([\d.]+) to ([\d.]+)\))?")


@dataclass(frozen=True, slots=True)
class Section:
    """A list of jobs in RESULTS.md: a row of cells by column for each arm and for each job."""

    head: str
    arms: dict[str, dict[str, str]]
    jobs: dict[str, dict[str, str]]


def parts() -> dict[str, dict[str, str]]:
    return {"README.md": {"measured": _measured()}}


def picture() -> str:
    """Return the picture: each job of `three` from its arrival to its end, under each arm."""
    jobs = section("three").jobs
    bars = [
        (arm, name, float(row["arrival"]), _seconds(row[f"{arm} (simulated)"]))
        for arm in ARMS
        for name, row in jobs.items()
    ]
    last = max(begin + seconds for _, _, begin, seconds in bars)
    return _svg(bars, last)


def section(name: str) -> Section:
    """Return what RESULTS.md says of a list of jobs."""
    text = (ROOT / RESULTS).read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    tables = [_rows(table) for table in re.findall(r"(?:^\|.*\n)+", text, re.M)]
    head = text.strip().partition("\n")[0]
    return Section(head, _by_first(tables[0]), _by_first(tables[1]))


def _rows(table: str) -> list[list[str]]:
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return [lines[0], *lines[2:]]


def _by_first(rows: list[list[str]]) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}


def _seconds(cell: str) -> float:
    return float(cell.partition(" ")[0])


def _shown(cell: str) -> str:
    """Return a mean with its spread, as `28.6 s (27.6 to 30.2)`."""
    match = _SPREAD.match(cell)
    assert match is not None, cell
    mean, least, most = match.groups()
    spread = f" ({least} to {most})" if least else ""
    return f"{mean} s{spread}"


def _row(name: str, cells: dict[str, str]) -> str:
    return f"| {name} | {_shown(cells['mean'])} | {_shown(cells['makespan'])} |"


def _repetitions(found: Section) -> str:
    runs = re.search(r"2 CPUs, (\d+) rep", found.head)
    assert runs is not None, found.head
    words = {"1": "One run", "2": "Means of two runs", "3": "Means of three runs"}
    return f"{words.get(runs[1], f'Means of {runs[1]} runs')} (least to greatest)"


def _measured() -> str:
    three, narrow = section("three"), section("narrow")
    alone = [row["alone"].partition(" ")[0] for row in three.jobs.values()]
    lines = [
        f"Three PyTorch trainings of two threads each, on two CPUs; alone they take "
        f"{', '.join(alone[:-1])} and {alone[-1]} s.",
        f"{_repetitions(three)}:",
        "",
        "| | mean completion | all done after |",
        "|---|---|---|",
        *(_row(name, three.arms[arm]) for arm, name in ARMS.items()),
        "",
        "Ten trainings of **one thread each**, which lose nothing side by side; the long ones came "
        "first.",
        f"{_repetitions(narrow)}:",
        "",
        "| | mean completion | all done after |",
        "|---|---|---|",
        *(_row(name, narrow.arms[arm]) for arm, name in ARMS.items()),
        "",
        "Threads that spin are slower under any scheduler than one thread each: if you can restart "
        "your jobs,",
        "set their threads first. dltools is for jobs as they are.",
    ]
    return "\n".join(lines)


_TITLE = "Three trainings on two CPUs, from arrival to end"
_LEFT, _TOP, _BAR, _GAP, _ROW = 150, 40, 20, 16, 24
_WIDTH, _RIGHT = 760, 56


def _svg(bars: list[tuple[str, str, float, float]], last: float) -> str:
    colours = run_colours(list(ARMS))  # the colours that dl-report gives them
    per_second = (_WIDTH - _LEFT - _RIGHT) / last
    count = len(bars) // len(ARMS)
    bottom = _TOP + len(ARMS) * (count * _ROW + _GAP) - _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{bottom + 44}" '
        f'viewBox="0 0 {_WIDTH} {bottom + 44}" font-family="sans-serif" font-size="14" role="img">',
        f"<title>{_TITLE}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="8" y="22" font-weight="bold">{_TITLE}</text>',
    ]
    for second in range(0, int(last) + 1, 20):
        x = _LEFT + second * per_second
        lines += [
            f'<line x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom + 4}" stroke="#dddddd"/>',
            f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{second}</text>',
        ]
    lines.append(f'<text x="{_WIDTH - 8}" y="{bottom + 38}" text-anchor="end">seconds</text>')
    for number, (arm, job, begin, seconds) in enumerate(bars):
        name, colour = ARMS[arm], colours[arm]
        group, row = divmod(number, count)
        y = _TOP + group * (count * _ROW + _GAP) + row * _ROW
        x, width = _LEFT + begin * per_second, seconds * per_second
        if row == 0:
            lines.append(f'<text x="8" y="{y + 15}" font-weight="bold">{escape(name)}</text>')
        ink = "#000000" if arm == "noop" else "#ffffff"
        lines += [
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>',
            f'<text x="{x + 6:.1f}" y="{y + 15}" fill="{ink}">{escape(job)}</text>',
            f'<text x="{x + width + 5:.1f}" y="{y + 15}">{begin + seconds:.0f} s</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
