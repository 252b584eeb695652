"""What dl-apply promises, tried on a real engine, as one table: `make trust`.

    python tests/trust/run.py [KILLS] [SEED]

Needs root and Docker. Runs the harness of tests/trust/undo.py with so many kills (500), and the
tests that show the other promises. Fails if a promise is broken or could not be tried.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from undo import try_cases

ROOT = Path(__file__).parents[2]

SHOWN_BY = {
    "whatever of a stream dies or hangs, its settings are undone": ["real_engine/test_leases.py"],
    "turns leave no container paused": ["real_engine/test_turns.py"],
    "bad settings are refused, failed changes reverted": ["real_engine/test_reverting.py"],
    "an administrator's change, and what is not selected, is left alone": [
        "real_engine/test_foreign.py", "apply/test_rules.py",
    ],
    "one run at a time; a dead run holds no lock": ["test_files.py"],
    "malformed and hostile text is one printable line": [
        "tools/test_malformed.py", "tools/test_escapes.py", "test_text.py",
    ],
}  # fmt: skip
"""Tests by the promise that they show."""


@dataclass(frozen=True, slots=True)
class Row:
    """One promise: what was tried, in words, how often it was broken, and how long it took (s)."""

    promise: str
    tried: str
    broken: int
    seconds: float


def undo_row(kills: int, seed: int) -> Row:
    """Try the promise of --undo, and say on standard error what was broken."""
    begun = time.monotonic()
    tally = try_cases(kills, seed)
    for line in tally.broken:
        print(line, file=sys.stderr)
    tried = f"{tally.kills.total()} kills at {len(tally.kills)} kinds of system calls"
    events = tally.events.total()
    tried += f", {tally.cases} cases, {events} restarts and the like; seed {seed}"
    promise = "killed anywhere, --undo restores every living container"
    return Row(promise, tried, len(tally.broken), time.monotonic() - begun)


def tests_row(promise: str, files: list[str]) -> Row:
    """Run the tests of a promise."""
    begun = time.monotonic()
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report.name}"]
        done = subprocess.run([*words, *(f"tests/{file}" for file in files)], cwd=ROOT,
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
        suite = ET.parse(report.name).getroot().find("testsuite")
    assert suite is not None
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    broken = count["failures"] + count["errors"]
    if broken or done.returncode not in (0, 1):
        print(done.stdout, file=sys.stderr)
    tried = f"{count['tests'] - count['skipped']} tests"
    tried += f", {count['skipped']} skipped" if count["skipped"] else ""
    return Row(promise, tried, broken, time.monotonic() - begun)


def main() -> None:
    """Print the table, a row as soon as it is known."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print("| promise | tried | broken | seconds |\n|---|---|---|---|", flush=True)
    broken = 0
    for promise in (None, *SHOWN_BY):
        row = undo_row(kills, seed) if promise is None else tests_row(promise, SHOWN_BY[promise])
        print(f"| {row.promise} | {row.tried} | {row.broken} | {row.seconds:.0f} |", flush=True)
        broken += row.broken
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
