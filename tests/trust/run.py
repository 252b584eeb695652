"""What dl-apply promises, tried on a real engine, as one table: `make trust`.

    python tests/trust/run.py [KILLS] [SEED]

Needs root and Docker. Runs the harness of tests/trust/undo.py with so many kills (500), 500
commands of the owners of tests/trust/owners_hand.py, the load of tests/trust/load.py for two
minutes, every parser of tests/trust/parsers.py for a few seconds, and the tests that show the other
promises, with all their repetitions. Fails if a promise is broken or could not be tried. The
variables OWNERS_COMMANDS, LOAD_SECONDS, LOAD_CONTAINERS and FUZZ_SECONDS (a parser) ask for more.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import fuzz
from helpers.held_load import hold
from owners_hand import try_owners
from parsers import PARSERS
from stumbling import try_each
from undo import try_cases

ROOT = Path(__file__).parents[2]

SHOWN_BY = {
    "whatever of a stream dies or hangs, its settings are undone": [
        "real_engine/test_leases.py",
    ],
    "an engine that dies or hangs holds up no other's lease": [
        "real_engine/test_leases_of_several.py", "apply/test_actuator.py",
    ],
    "turns leave no container paused": ["real_engine/test_turns.py", "contract/test_turns.py"],
    "bad settings are refused, failed changes reverted": ["real_engine/test_reverting.py"],
    "an administrator's change, and what is not selected, is left alone": [
        "real_engine/test_foreign.py", "real_engine/test_roles.py",
        "apply/test_refusals.py", "engine/limits/test_cpu_limits.py",
    ],
    "one run at a time; a dead run holds no lock": ["test_whole_files.py"],
    "state is its owner's; a clone takes none of another machine": [
        "engine/test_state_folder.py", "cli/apply/test_foreign_state.py",
        "apply/test_cloned_hosts.py",
    ],
    "malformed and hostile text is one printable line": [
        "tools/test_malformed.py", "tools/test_escapes.py", "tools/test_hostile_patterns.py",
        "test_text.py",
    ],
    "hostile amounts are bounded": [
        "real_engine/test_hostile_logs.py", "real_engine/test_sources.py",
        "probe/progress/test_hostile.py", "probe/files/test_rooted.py",
        "probe/endpoints/test_scraper.py", "apply/test_delivering.py",
        "test_bounded_reading.py",
    ],
    "dl-probe needs cgroup files and GET requests": ["real_engine/test_read_only.py"],
    "full and read-only disks, rotated logs, stepped clocks lose nothing": [
        "cli/apply/test_full_disk.py", "real_engine/test_rotated_logs.py",
        "real_engine/test_clock_steps.py", "observations/recording/test_directory.py",
    ],
    "a recorder that is killed, or whose disk is full, loses nothing that it has written": [
        "observations/recording/test_recorder.py",
    ],
    "no short job is worse off than under Docker alone, whatever runs beside it": [
        "sim/test_starvation.py",
    ],
    "the same observations give the same plan, in whatever pieces they come": [
        "plan/test_planner.py", "plan/test_gpu_server.py",
    ],
    "the simulator gives what theory says, and the same digits each time": [
        "sim/test_simulation.py", "sim/test_papers.py", "cli/sim/test_sim.py",
    ],
    "many hosts take no longer than in proportion; slow ones hold up no other": [
        "probe/test_sampler_hosts.py", "plan/test_many_hosts.py",
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


def owners_row(commands: int, seed: int) -> Row:
    """Let owners give commands; what was not as on Docker alone is on standard error."""
    begun = time.monotonic()
    hand = try_owners(commands, seed)
    promise = "what owners do ends as on Docker alone, and nothing of theirs is reverted"
    tried = f"{hand.commands} commands; {hand.figures}; seed {seed}"
    return Row(promise, tried, len(hand.broken), time.monotonic() - begun)


def stumbling_row() -> Row:
    """Let the engine stumble, and say on standard error what the tools did that they must not."""
    begun = time.monotonic()
    tried = try_each()
    broken = [one for one in tried if one.outcome.broken]
    for one in broken:
        print(f"{one.kind}, {one.fault}, {one.tools}: {one.outcome}", file=sys.stderr)
    kinds = len({one.kind for one in tried})
    promise = "whatever goes wrong with a request, the tools go on, with one gap or one line"
    said = f"{len(tried)} faults in {kinds} kinds of requests"
    return Row(promise, said, len(broken), time.monotonic() - begun)


def load_row(seconds: float, most: int, seed: int) -> Row:
    """Hold the pipe under load, and say on standard error what was broken."""
    begun = time.monotonic()
    load = hold(seconds, most, seed)
    for line in load.broken:
        print(line, file=sys.stderr)
    promise = "under load nothing leaks, no exit is missed, nothing wrong is touched"
    tried = f"{seconds:.0f} s: {'; '.join(load.figures)}; seed {seed}"
    return Row(promise, tried, len(load.broken), time.monotonic() - begun)


def fuzz_row(seconds: float) -> Row:
    """Try every parser; findings are kept below fuzz-findings/."""
    begun = time.monotonic()
    tried = fuzz(list(PARSERS), seconds, sys.stderr)
    inputs = sum(one.inputs for one in tried.values())
    found = sum(len(one.findings) for one in tried.values())
    promise = "no input raises anything but a refusal, or takes longer than 2 s"
    said = f"{inputs} inputs, {len(tried)} parsers, {seconds:g} s each"
    return Row(promise, said, found, time.monotonic() - begun)


def tests_row(promise: str, files: list[str]) -> Row:
    """Run the tests of a promise."""
    begun = time.monotonic()
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report.name}"]
        done = subprocess.run(
            [*words, *(f"tests/{file}" for file in files)],
            cwd=ROOT,
            env=os.environ | {"DLTOOLS_TESTS": "trust"},
            stdout=subprocess.PIPE,
            text=True,
        )
        suite = ET.parse(report.name).getroot().find("testsuite")
    assert suite is not None
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    broken = count["failures"] + count["errors"]
    if broken or done.returncode not in (0, 1):
        print(done.stdout, file=sys.stderr)
    tried = f"{count['tests'] - count['skipped']} tests"
    tried += f", {count['skipped']} skipped" if count["skipped"] else ""
    return Row(promise, tried, broken, time.monotonic() - begun)


def rows(kills: int, seed: int) -> list[Callable[[], Row]]:
    """Return what makes each row of the table."""
    asked = {
        name: float(os.environ.get(name, usual))
        for name, usual in (
            ("OWNERS_COMMANDS", 500),
            ("LOAD_SECONDS", 120),
            ("LOAD_CONTAINERS", 60),
            ("FUZZ_SECONDS", 4),
        )
    }
    most = int(asked["LOAD_CONTAINERS"])
    return [
        partial(undo_row, kills, seed),
        *(partial(tests_row, promise, files) for promise, files in SHOWN_BY.items()),
        partial(owners_row, int(asked["OWNERS_COMMANDS"]), seed),
        stumbling_row,
        partial(load_row, asked["LOAD_SECONDS"], most, seed),
        partial(fuzz_row, asked["FUZZ_SECONDS"]),
    ]


def main() -> None:
    """Print the table, a row as soon as it is known."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print("| promise | tried | broken | seconds |\n|---|---|---|---|", flush=True)
    broken = 0
    for make in rows(kills, seed):
        row = make()
        print(f"| {row.promise} | {row.tried} | {row.broken} | {row.seconds:.0f} |", flush=True)
        broken += row.broken
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
