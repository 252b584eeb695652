"""dl-sim as a user runs it: files, generators, tables, faults, and the same digits every time."""

import csv
import io
import json
from pathlib import Path

import pytest
from helpers.examples import repeated, some_of
from helpers.tools import Tools, complaint

from dltools.observations.formats.registry import read_table

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


def test_policies_are_compared_with_the_first(tool) -> None:
    done = tool("dl-sim", "-p", "noop", "-p", "srtf", "--realize", "priority", input=WORKLOAD)
    assert done.returncode == 0, done.stderr
    noop, srtf = rows(done.stdout)
    assert (noop["policy"], noop["jobs"], noop["unfinished"]) == ("noop", 2, 0)
    assert noop["makespan_ratio"] == 1
    assert float(str(srtf["makespan_ratio"])) < 1
    assert srtf["makespan_ratio"] == srtf["makespan"] / noop["makespan"]  # type: ignore[operator]


def test_a_row_per_job_in_csv(tool) -> None:
    done = tool("dl-sim", "-p", "noop", "--jobs", "--format", "csv", input=WORKLOAD)
    found = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert [(row["policy"], row["name"], row["arrival"]) for row in found] == [
        ("noop", "a", "0.0"),
        ("noop", "b", "5.0"),
    ]
    assert found[1]["first"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_digits_on_one_core_and_on_all(tool) -> None:
    jobs = f"poisson:{repeated(12, 100)}"
    arguments = ("--generate", jobs, "--repeat", "2", "-p", "noop", "-p", "las", "-p", "flowcon")
    once = tool("dl-sim", *arguments)
    assert once.returncode == 0, once.stderr
    assert tool("dl-sim", *arguments).stdout == once.stdout
    other = tool("dl-sim", *arguments, "--seed", "7")
    assert other.stdout != once.stdout


def test_the_table_is_for_people(tool) -> None:
    done = tool("dl-sim", "--format", "table", "-p", "noop", "-p", "srtf", input=WORKLOAD)
    head, _, first, second, bound = done.stdout.decode().splitlines()
    assert head.split()[:3] == ["POLICY", "MAKESPAN", "MEAN"]
    assert "(1.00)" in first
    assert second.startswith("srtf")
    assert bound.startswith("bound")
    means = [float(row.split()[4]) for row in (first, second, bound)]
    assert means == sorted(means, reverse=True)


def test_what_is_written_reads_like_a_recording(tool, tmp_path) -> None:
    file = tmp_path / "seen.parquet"
    done = tool("dl-sim", "-p", "noop", "--jobs", "-o", file, "-i", "1s", input=WORKLOAD)
    assert done.returncode == 0, done.stderr
    planned = tool("dl-plan", "--policy", "tradl", "--format", "table", file)
    assert planned.returncode == 0, planned.stderr
    again = tool("dl-sim", "--from", file, "-p", "noop", "--jobs")
    assert again.returncode == 0, again.stderr
    for before, after in zip(rows(done.stdout), rows(again.stdout), strict=True):
        assert after["name"] == before["name"]
        assert float(str(after["finish"])) == pytest.approx(float(str(before["finish"])), rel=0.1)


SAMPLES = Path(__file__).parents[3] / "samples"


def test_a_recording_under_no_policy_ends_as_it_did(tool) -> None:
    recording = SAMPLES / "digits" / "recording.parquet"
    done = tool("dl-sim", "--from", recording, "-p", "noop", "--jobs")
    assert done.returncode == 0, done.stderr
    found = {str(row["name"]): row for row in rows(done.stdout)}
    with recording.open("rb") as file:
        table = read_table(file, "recording").to_pylist()
    begun = min(row["time"] for row in table if row["kind"] == "container")
    for name, row in found.items():
        seen = [r for r in table if r["kind"] == "container" and r["container_name"] == name]
        last = (seen[-1]["time"] - begun).total_seconds()
        used = seen[-1]["cpu_seconds"] - seen[0]["cpu_seconds"]
        assert float(str(row["finish"])) == pytest.approx(last, rel=0.15)
        assert float(str(row["cpu"])) == pytest.approx(used, rel=0.15)


def test_a_recording_of_serving_has_the_classes_that_it_had(tool) -> None:
    done = tool("dl-sim", "--from", SAMPLES / "serving/recording.parquet", "-p", "noop", "--jobs")
    found = rows(done.stdout)
    satisfied = {str(r["name"]) for r in found if float(str(r["satisfied"])) > 0}
    assert satisfied == {"meter"}


@pytest.mark.parametrize("criterion", some_of(["mean_completion", "makespan", "time_to_target"], 1))
def test_the_best_policy_is_first(tool, criterion) -> None:
    done = tool("dl-sim", "--best", criterion, input=WORKLOAD)
    assert done.returncode == 0, done.stderr
    found = rows(done.stdout)
    key = {"time_to_target": "time_to_first"}.get(criterion, criterion)
    worths = [float(str(row[key] or "inf")) for row in found]
    others = [worth for worth in worths if worth > 1.01 * min(worths)]
    assert worths[-len(others) :] == others == sorted(others)
    assert worths[0] < next(
        one for one, row in zip(worths, found, strict=True) if row["policy"] == "noop"
    )


def test_a_table_of_all_policies_ends_with_the_command_of_the_best(tool) -> None:
    done = tool("dl-sim", "--best", "makespan", "--format", "table", input=WORKLOAD)
    *_, bound, last = done.stdout.decode().splitlines()
    assert bound.startswith("bound")
    assert last.startswith("The best of 9:  dl-plan --policy ")


def test_hosts_are_so_many(tool) -> None:
    arguments = ("--generate", "burst:8", "--nodes", "2", "-p", "noop", "--jobs")
    shown = {row["node"] for row in rows(tool("dl-sim", *arguments).stdout)}
    assert shown == {"node-1", "node-2"}


@pytest.mark.parametrize(
    ("arguments", "input_", "code", "fault"),
    [
        ((), b"[[job]]\nwork = -1", 65, "work must not be below 0"),
        ((), b"[[job", 65, "standard input: "),
        ((), b"\xff", 65, "not a workload file"),
        (("--generate", "burst:3", "--cpus", "0"), b"", 78, "--cpus must be more than 0"),
        (("--best", "beauty"), WORKLOAD, 78, "must be one of mean_completion"),
        (("--best", "satisfied"), WORKLOAD, 65, "no job of this workload has a value"),
        (("--from", "nowhere.parquet"), b"", 74, "no such file"),
        (("--generate", "odd:3"), b"", 78, "KIND:N"),
        (("--generate", "burst:3", "--nodes", "0"), b"", 78, "--nodes must be between 1 and"),
    ],
)
def test_faults_are_told_in_a_line(tool, arguments, input_, code, fault) -> None:
    done = tool("dl-sim", *arguments, input=input_)
    assert done.returncode == code
    assert fault in complaint(done.stderr)


def test_plans_of_every_tick_say_when_they_were_made(tool, tmp_path) -> None:
    file = tmp_path / "seen.parquet"
    tool("dl-sim", "-p", "noop", "-o", file, "-i", "5s", input=WORKLOAD)
    done = tool("dl-plan", "--policy", "flowcon", "--every", file)
    found = [str(row["at"]) for row in rows(done.stdout) if row["kind"] == "plan"]
    assert found[0] == "2026-01-01T00:00:00.000000Z"
    assert found[1] == "2026-01-01T00:00:05.000000Z"
    assert found == sorted(found)
