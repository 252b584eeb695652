"""Lines a second through the extractor, each family on its own format, on one core.

    python tests/bench/extract.py

Every excerpt of tests/probe/progress/excerpts is repeated to some megabytes and read as a
container's log is: bytes in, points out. Prints the families from the slowest on, and what lines
cost that are of no family.
"""

import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose probe.py is another

from helpers.excerpts import excerpts  # noqa: E402

from dltools.probe.progress import Automatic, PointReader  # noqa: E402

NOISE = b"2026-01-31 12:00:00,123 INFO worker 7 handled /v1/items in shard 12 of 40, cache warm\n"


def rate(data: bytes) -> tuple[float, int]:
    """Return lines a second and how many points a thousand lines give."""
    log = PointReader(Automatic())
    lines = data.count(b"\n") + data.count(b"\r")
    begun = time.perf_counter()
    points = sum(len(log.feed(data[at : at + 65536])) for at in range(0, len(data), 65536))
    return lines / (time.perf_counter() - begun), 1000 * points // lines


def main() -> None:
    found = []
    for excerpt in excerpts():
        speed, points = rate(excerpt.log * max(1, 2_000_000 // len(excerpt.log)))
        found.append((speed, points, ", ".join(excerpt.families), excerpt.name))
    found.sort()
    print("lines/s     points per 1000 lines   family (excerpt), the slowest first")
    for speed, points, family, name in found:
        print(f"{speed:9.0f}   {points:6}                  {family} ({name})")
    noise, _ = rate(NOISE * 30_000)
    print(f"{noise:9.0f}        0                  no family: every one is tried on every line")
    mean = sum(1 / speed for speed, *_ in found) / len(found)
    print(f"all formats in equal parts: {1 / mean:.0f} lines/s; the slowest: {found[0][2]}")


if __name__ == "__main__":
    main()
