"""Excerpts of logs of each family of formats, and the points that stand in them.

An excerpt is a pair of files in tests/probe/progress/excerpts/: NAME.log, a log in its own bytes,
and NAME.points, a line for each point in it: `loss = 0.25, step 100, epoch 1, after 2 s (keras)`.
"""

from dataclasses import dataclass
from pathlib import Path

from dltools.probe.progress import Automatic, Point, PointReader

FOLDER = Path(__file__).parents[1] / "probe" / "progress" / "excerpts"


@dataclass(frozen=True)
class Excerpt:
    """A log, and the lines that its points should give."""

    name: str
    log: bytes
    points: list[str]

    @property
    def text(self) -> str:
        return self.log.decode()

    @property
    def families(self) -> set[str]:
        return {line.rpartition(" (")[2].rstrip(")") for line in self.points}


def excerpts() -> list[Excerpt]:
    return [_excerpt(file) for file in sorted(FOLDER.glob("*.log"))]


def _excerpt(file: Path) -> Excerpt:
    points = file.with_suffix(".points")
    lines = points.read_text().splitlines() if points.exists() else []
    return Excerpt(file.stem, file.read_bytes(), lines)


def read(data: bytes, piece: int = 0) -> list[Point]:
    """Return the points of a log, as a container's log is read, in pieces of a size."""
    log = PointReader(Automatic())
    if not piece:
        return log.feed(data) + log.end()
    parts = [data[at : at + piece] for at in range(0, len(data), piece)]
    return [point for part in parts for point in log.feed(part)] + log.end()


def shown(point: Point) -> str:
    """Return a point as a line of a .points file."""
    said = [f"{point.metric} = {_number(point.value)}"]
    if point.step is not None:
        said.append(f"step {point.step}")
    if point.epoch is not None:
        said.append(f"epoch {_number(point.epoch)}")
    if point.elapsed_s is not None:
        said.append(f"after {point.elapsed_s:.9g} s")
    return f"{', '.join(said)} ({point.source})"


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")
