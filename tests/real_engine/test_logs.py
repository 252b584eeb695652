"""Progress in the logs of real containers, however they print it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from helpers.containers import Containers, Job, eventually
from helpers.tools import Tools, complaint, records

Rows = list[dict[str, Any]]


@pytest.fixture
def sample(tool: Tools, run: Containers) -> Any:
    """Wait until a job has printed its last line, `done`, and sample it once."""

    def take(job: Job, *arguments: object) -> Rows:
        eventually(job.log, lambda log: b"done" in log)
        done = tool("dl-probe", *run.only, "--format", "jsonl", *arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        return records(done.stdout)

    return take


def points(rows: Rows) -> list[tuple[str, float]]:
    return [(r["metric"], float(r["value"])) for r in rows if r["kind"] == "progress"]


def gap(rows: Rows) -> str | None:
    (row,) = (row for row in rows if row["kind"] == "container")
    found: str | None = row.get("gap")
    return found


def test_both_streams_are_read_in_order(sample: Any, run: Containers) -> None:
    job = run(
        "echo loss: 3; usleep 50000; echo loss: 2 >&2; usleep 50000; echo loss: 1; "
        "echo done; sleep 60"
    )
    assert points(sample(job)) == [("loss", 3), ("loss", 2), ("loss", 1)]


def test_a_terminal_s_line_ends(sample: Any, run: Containers) -> None:
    job = run("echo epoch 1 loss: 3; echo epoch 2 loss: 2; echo done; sleep 60", tty=True)
    rows = sample(job)
    assert points(rows) == [("loss", 3), ("loss", 2)]
    assert [row["epoch"] for row in rows if row["kind"] == "progress"] == [1, 2]


def test_a_progress_bar_redrawn_by_carriage_returns(sample: Any, run: Containers) -> None:
    job = run(r"printf '\rloss=3.0\rloss=2.0\033[K\rloss=1.0\n'; echo done; sleep 60")
    assert points(sample(job)) == [("loss", 3), ("loss", 2), ("loss", 1)]


def test_a_progress_bar_longer_than_a_log_entry(sample: Any, run: Containers) -> None:
    """The engine cuts what has no line end into entries of 16 KiB, each with its time stamp."""
    job = run(
        "awk 'BEGIN { for (i = 0; i < 3000; i++) printf \"\\rstep %d loss=%.3f\", i, i/1000 }'; "
        "echo; echo done; sleep 60"
    )
    rows = sample(job)
    assert [value for _, value in points(rows)] == [step / 1000 for step in range(3000)]
    assert [row["step"] for row in rows if row["kind"] == "progress"] == list(range(3000))


def test_a_long_line_costs_only_itself(sample: Any, run: Containers) -> None:
    job = run(
        "echo loss: 2.5; head -c 300000 /dev/zero | tr '\\0' x; echo; echo loss: 1.5; echo done;"
        " sleep 60"
    )
    assert points(sample(job)) == [("loss", 2.5), ("loss", 1.5)]


def test_binary_junk_is_passed_over(sample: Any, run: Containers) -> None:
    job = run(
        "echo loss: 2.5; head -c 50000 /dev/urandom; echo; printf '\\377\\376loss: 1.5\\n'; "
        "echo loss: 1.25; echo done; sleep 60"
    )
    found = points(sample(job))
    assert found[0] == ("loss", 2.5)
    assert found[-1] == ("loss", 1.25)


def test_what_is_not_finite_is_data(sample: Any, run: Containers) -> None:
    job = run("echo loss: nan; echo loss: inf; echo loss: 1e-3; echo done; sleep 60")
    values = [value for _, value in points(sample(job))]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, 0.001]


def test_a_label_gives_the_pattern(sample: Any, run: Containers) -> None:
    label = {"dltools.pattern": r"score (?P<f1>[0-9.]+) at (?P<step>\d+)"}
    job = run("echo loss: 9; echo score 0.5 at 7; echo done; sleep 60", labels=label)
    rows = sample(job, "--pattern", "loss: (?P<other>.*)")
    assert points(rows) == [("f1", 0.5)]
    (point,) = (row for row in rows if row["kind"] == "progress")
    assert (point["step"], point["source"]) == (7, "pattern")


def test_an_option_gives_the_pattern(sample: Any, run: Containers) -> None:
    job = run("echo loss: 9; echo score 0.5; echo done; sleep 60")
    assert points(sample(job, "--pattern", "score (?P<f1>[0-9.]+)")) == [("f1", 0.5)]


def test_an_invalid_pattern_label_is_a_gap_and_no_failure(sample: Any, run: Containers) -> None:
    job = run("echo loss: 0.5; echo done; sleep 60", labels={"dltools.pattern": "(?P<loss"})
    rows = sample(job)
    assert "dltools.pattern" in str(gap(rows))
    assert points(rows) == [("loss", 0.5)]


def test_an_unknown_label_is_told_in_the_gap(sample: Any, run: Containers) -> None:
    rows = sample(run("echo loss: 0.5; echo done; sleep 60", labels={"dltools.targt": "0.5"}))
    assert gap(rows) == "unknown label dltools.targt: did you mean dltools.target?"
    assert points(rows) == [("loss", 0.5)]


def test_a_hostile_pattern_holds_nobody_up(tool: Tools, run: Containers) -> None:
    """With a backtracking engine this line takes longer than the sun has left."""
    script = "head -c 16000 /dev/zero | tr '\\0' a; echo '!'; echo done; sleep 60"
    hostile = run(script, name="hostile", labels={"dltools.pattern": "(?P<loss>(a+)+)$"})
    job = run("echo loss: 0.5; echo done; sleep 60")
    for one in (hostile, job):
        eventually(one.log, lambda log: b"done" in log)
    done = tool("dl-probe", *run.only, "-i", "0.2", "-c", "2", "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, b"")
    found = records(done.stdout)
    assert [row["value"] for row in found if row.get("container_id") == job.id and "value" in row]
    assert sum(row["kind"] == "node" for row in found) == 2


def test_an_invalid_pattern_option_is_a_bad_setting(tool: Tools, run: Containers) -> None:
    done = tool("dl-probe", *run.only, "--pattern", "(?P<loss")
    assert done.returncode == 78
    assert complaint(done.stderr).startswith("dl-probe: ")


def test_a_container_that_keeps_no_log_is_a_gap(tool: Tools, run: Containers) -> None:
    run("echo loss: 0.5; sleep 60", log_config={"Type": "none"})
    done = tool("dl-probe", *run.only, "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, b"")
    rows = records(done.stdout)
    assert points(rows) == []
    assert str(gap(rows)).startswith("logs: ")
    (row,) = (row for row in rows if row["kind"] == "container")
    assert row["cpu_seconds"] > 0


def test_a_container_without_a_shell(tool: Tools, run: Containers) -> None:
    job = run("exec /bin/busybox sleep 60")
    done = tool("dl-probe", *run.only, "--format", "jsonl")
    assert done.returncode == 0
    rows = records(done.stdout)
    assert [row["container_id"] for row in rows if row["kind"] == "container"] == [job.id]
    assert gap(rows) is None


def test_only_recent_lines_are_read(tool: Tools, run: Containers) -> None:
    job = run("echo loss: 9; sleep 12; echo loss: 0.5; echo done; sleep 60")
    eventually(job.log, lambda log: b"done" in log)
    done = tool("dl-probe", *run.only, "--format", "jsonl", "--since", "11")
    assert points(records(done.stdout)) == [("loss", 0.5)]


def test_verbose_names_the_gaps(tool: Tools, run: Containers) -> None:
    job = run(log_config={"Type": "none"})
    done = tool("dl-probe", *run.only, "-v")
    lines = done.stderr.decode().splitlines()
    assert any(line.startswith(f"dl-probe: {job.name}: logs: ") for line in lines)
