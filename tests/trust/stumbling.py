"""Each fault in each kind of request that the tools make, by a proxy before a real engine.

    python tests/trust/stumbling.py [KIND...]

Prints a table: for `dl-probe` once and for the whole pipe what became of them. Fails where a tool
ended as no man page says, a container was missing without a gap, or was left changed.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.stumbles import CHANGES, ONCE, STREAM, Outcome, Stumbles, faults_of
from helpers.stumbling import Fault

AT_ONCE = 2
USUAL = "unix:///var/run/docker.sock"


@dataclass(frozen=True, slots=True)
class Tried:
    """A fault in a kind of request, and what became of the tools."""

    kind: str
    fault: Fault
    tools: str
    outcome: Outcome


def try_all(url: str, kinds: Sequence[str] = ()) -> Iterator[Tried]:
    """Yield the outcome of each fault in each kind of request, or in those of these kinds."""
    cases = [
        (kind, fault, tools)
        for tools, asked in (("dl-probe", ONCE), ("pipe", STREAM))
        for kind in asked
        if not kinds or kind in kinds
        for fault in faults_of(kind)
    ]

    def try_one(case: tuple[str, Fault, str]) -> Tried:
        kind, fault, tools = case
        with Stumbles(url, is_busy=kind in CHANGES) as stumbles:
            make: Callable[[], Outcome] = (
                (lambda: stumbles.once(kind, fault))
                if tools == "dl-probe"
                else (lambda: stumbles.pipe(kind, [fault]))
            )
            return Tried(kind, fault, tools, make())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(try_one, cases)


def try_each() -> list[Tried]:
    """Try all on the engine that the tools use."""
    return [*try_all(os.environ.get("DOCKER_HOST", USUAL))]


def main() -> None:
    url = os.environ.get("DOCKER_HOST", USUAL)
    broken = 0
    print("| request | fault | tools | outcome |\n|---|---|---|---|", flush=True)
    for one in try_all(url, sys.argv[1:]):
        broken += bool(one.outcome.broken)
        mark = "**" if one.outcome.broken else ""
        said = " / ".join((*one.outcome.said, *one.outcome.gaps))
        print(
            f"| {one.kind} | {one.fault} | {one.tools} | {mark}{one.outcome.words}{mark} | {said}",
            flush=True,
        )
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
