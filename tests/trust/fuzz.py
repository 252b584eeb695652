"""Every parser against inputs that nobody would write: `make fuzz`.

    python tests/trust/fuzz.py [SECONDS] [PARSER ...]

Each parser of tests/trust/parsers.py gets so many seconds (600): half of them inputs that
hypothesis makes of the seeds in tests/trust/seeds, half of them those of atheris, which follows the
code that an input reaches, where it is installed. Prints a row for each, and fails if there are
findings; they are kept below fuzz-findings/.
"""

import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import hypothesis
from parsers import LONGEST, PARSERS, SEEDS, attempt, inputs, seeds

FINDINGS = Path("fuzz-findings")
HAS_ATHERIS = importlib.util.find_spec("atheris") is not None
_BATCH = 1_000


@dataclass
class Tried:
    """What one parser was given: how many inputs, for how long (s), and what was found."""

    inputs: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)


def by_hypothesis(name: str, seconds: float) -> Tried:
    """Try inputs until the time is over or one is a finding, which hypothesis makes small."""
    tried, begun, parser, begin = Tried(), time.monotonic(), PARSERS[name], seeds(name)
    last = b""

    @hypothesis.settings(
        max_examples=_BATCH,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(inputs(name))
    def one(data: bytes) -> None:
        nonlocal last
        if time.monotonic() - begun < seconds:
            last = data
            tried.inputs += 1
            attempt(parser, data)

    for data in begin:
        attempt(parser, data)
    number = 0
    while time.monotonic() - begun < seconds and not tried.findings:
        number += 1
        try:
            hypothesis.seed(int(time.time_ns()) + number)(one)()
        except Exception:
            tried.findings.append(keep(name, last, traceback.format_exc()))
    tried.seconds = time.monotonic() - begun
    return tried


def by_atheris(name: str, seconds: float) -> Tried:
    """Try inputs by coverage, in a process of its own."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        corpus = Path(home) / "corpus"
        corpus.mkdir()
        words = [
            sys.executable,
            str(Path(__file__).with_name("fuzz_atheris.py")),
            name,
            f"-max_total_time={seconds:.0f}",
            f"-max_len={LONGEST}",
            "-print_final_stats=1",
            "-timeout=30",
            "-rss_limit_mb=4096",
            f"-artifact_prefix={home}/",
            str(corpus),
            str(SEEDS / (PARSERS[name].seeds_of or name)),
        ]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        found = [path.read_bytes() for path in Path(home).iterdir() if path.is_file()]
    said = done.stderr
    executed = re.search(r"number_of_executed_units: (\d+)", said)
    tried = Tried(int(executed[1]) if executed else 0, time.monotonic() - begun)
    if done.returncode != 0:
        tried.findings = [keep(name, data, said + done.stdout) for data in found or [b""]]
    return tried


def keep(name: str, data: bytes, said: str) -> str:
    """Write down a finding, and say where it is."""
    FINDINGS.mkdir(exist_ok=True)
    path = FINDINGS / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(said)
    print(f"{path}: {said.strip().splitlines()[-1]}", file=sys.stderr)
    return str(path)


def fuzz(names: list[str], seconds: float, out: TextIO = sys.stdout) -> dict[str, Tried]:
    """Try parsers for so long each, and print a row for each way."""
    all_tried: dict[str, Tried] = {}
    ways = {"hypothesis": by_hypothesis} | ({"atheris": by_atheris} if HAS_ATHERIS else {})
    head = "| parser | by | inputs | seconds | findings |\n|---|---|---|---|---|"
    print(head, file=out, flush=True)
    for name in names:
        total = all_tried.setdefault(name, Tried())
        for way, work in ways.items():
            tried = work(name, seconds / len(ways))
            print(
                f"| {name} | {way} | {tried.inputs} | {tried.seconds:.0f} | "
                f"{len(tried.findings)} |",
                file=out,
                flush=True,
            )
            total.inputs += tried.inputs
            total.seconds += tried.seconds
            total.findings += tried.findings
    if not HAS_ATHERIS:
        print("atheris is not installed: hypothesis alone", file=sys.stderr)
    return all_tried


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    all_tried = fuzz(sys.argv[2:] or list(PARSERS), seconds)
    inputs = sum(tried.inputs for tried in all_tried.values())
    found = sum(len(tried.findings) for tried in all_tried.values())
    print(f"{len(all_tried)} parsers, {inputs} inputs, {found} findings")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
