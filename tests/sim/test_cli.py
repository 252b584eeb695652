"""dl-sim as a user runs it: files, generators, tables, faults, and the same digits every time."""

from __future__ import annotations

import csv
import io
import json

import pytest
from engine.tools import Tools, complaint

WORKLOAD = b"""
[[job]]
name = "a"
work = 20
threads = 2

[[job]]
name = "b"
arrival = 5
work = 10
threads = 2
first = 0.5
"""


@pytest.fixture
def tool() -> Tools:
    return Tools()


def rows(output: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


def test_policies_are_compared_with_the_first(tool: Tools) -> None:
    done = tool("dl-sim", "-p", "noop", "-p", "srtf", "--realize", "priority", input=WORKLOAD)
    assert done.returncode == 0, done.stderr
    noop, srtf = rows(done.stdout)
    assert (noop["policy"], noop["jobs"], noop["unfinished"]) == ("noop", 2, 0)
    assert noop["makespan_ratio"] == 1
    assert float(str(srtf["makespan_ratio"])) < 1
    assert srtf["makespan_ratio"] == srtf["makespan"] / noop["makespan"]  # type: ignore[operator]


def test_a_row_per_job_in_csv(tool: Tools) -> None:
    done = tool("dl-sim", "-p", "noop", "--jobs", "--format", "csv", input=WORKLOAD)
    found = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert [(row["policy"], row["name"], row["arrival"]) for row in found] == [
        ("noop", "a", "0.0"), ("noop", "b", "5.0"),
    ]  # fmt: skip
    assert found[1]["first"]


def test_the_same_seed_gives_the_same_digits_on_one_core_and_on_all(tool: Tools) -> None:
    arguments = ("--generate", "poisson:100", "--repeat", "2", "-p", "noop", "-p", "las",
                 "-p", "flowcon")  # fmt: skip
    once = tool("dl-sim", *arguments)
    assert once.returncode == 0, once.stderr
    assert tool("dl-sim", *arguments).stdout == once.stdout
    other = tool("dl-sim", *arguments, "--seed", "7")
    assert other.stdout != once.stdout


def test_the_table_is_for_people(tool: Tools) -> None:
    done = tool("dl-sim", "--format", "table", "-p", "noop", "-p", "srtf", input=WORKLOAD)
    head, _, first, second = done.stdout.decode().splitlines()
    assert head.split()[:3] == ["POLICY", "MAKESPAN", "MEAN"]
    assert "(1.00)" in first
    assert second.startswith("srtf")


@pytest.mark.parametrize(
    ("arguments", "input_", "code", "fault"),
    [
        ((), b"[[job]]\nwork = -1", 65, "work is not below 0"),
        ((), b"[[job]]\nspeed = 1", 65, "unknown key 'speed'"),
        ((), b"[[job]]\nname = 'a'\n[[job]]\nname = 'a'", 65, "two jobs are called 'a'"),
        ((), b"[[job]]\nrequest = 1", 65, "a serving job has a duration"),
        ((), b"[[job]]\ncurve = { kind = 'odd' }", 65, "a curve's kind is one of"),
        ((), b"[[job]]\nmemory = 9\n[[node]]\ncpus = 1\nmemory = 5", 65, "fits no node"),
        ((), b"[job]\n", 65, "write [[job]]"),
        ((), b"[[job", 65, "standard input: "),
        ((), b"\xff", 65, "not a workload file"),
        (("-p", "nobody"), WORKLOAD, 78, "unknown policy"),
        (("--set", "nothing=1"), WORKLOAD, 78, "none of these policies has it"),
        (("--set", "alpha=7"), WORKLOAD, 78, "alpha is a number from 0 to 1"),
        (("--realize", "magic"), WORKLOAD, 78, "unknown mode"),
        (("--generate", "odd:3"), b"", 78, "KIND:N"),
        (("--generate", "burst:0"), b"", 78, "KIND:N"),
        (("--generate", "burst:3", "--nodes", "0"), b"", 78, "more than 0"),
    ],
)
def test_faults_are_told_in_a_line(
    tool: Tools, arguments: tuple[str, ...], input_: bytes, code: int, fault: str
) -> None:
    done = tool("dl-sim", *arguments, input=input_)
    assert done.returncode == code
    assert fault in complaint(done.stderr)
