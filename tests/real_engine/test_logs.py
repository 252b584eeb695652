"""Progress in the logs of real containers, however they print it."""

from typing import Any

import pytest
from helpers.containers import Job, eventually
from real_engine.conftest import row_of

Rows = list[dict[str, Any]]


@pytest.fixture
def ended(sample: Any) -> Any:
    """Wait until a job has printed its last line, `done`, and sample it once."""

    def take(job: Job, *arguments: object) -> Rows:
        eventually(job.log, lambda log: b"done" in log)
        rows: Rows = sample(*arguments)
        return rows

    return take


def points(rows: Rows) -> list[tuple[str, float]]:
    return [(r["metric"], float(r["value"])) for r in rows if r["kind"] == "progress"]


def test_both_streams_are_read_in_order(ended, run) -> None:
    job = run(
        "echo loss: 3; usleep 50000; echo loss: 2 >&2; usleep 50000; echo loss: 1; "
        "echo done; sleep 60"
    )
    assert points(ended(job)) == [("loss", 3), ("loss", 2), ("loss", 1)]


def test_a_terminal_s_line_ends(ended, run) -> None:
    job = run("echo epoch 1 loss: 3; echo epoch 2 loss: 2; echo done; sleep 60", tty=True)
    rows = ended(job)
    assert points(rows) == [("loss", 3), ("loss", 2)]
    assert [row["epoch"] for row in rows if row["kind"] == "progress"] == [1, 2]


def test_a_progress_bar_longer_than_a_log_entry(ended, run) -> None:
    """The engine cuts what has no line end into entries of 16 KiB, each with its time stamp."""
    job = run(
        "awk 'BEGIN { for (i = 0; i < 3000; i++) printf \"\\rstep %d loss=%.3f\", i, i/1000 }'; "
        "echo; echo done; sleep 60"
    )
    rows = ended(job)
    assert [value for _, value in points(rows)] == [step / 1000 for step in range(3000)]
    assert [row["step"] for row in rows if row["kind"] == "progress"] == list(range(3000))


def test_a_long_line_costs_only_itself(ended, run) -> None:
    job = run(
        "echo loss: 2.5; head -c 300000 /dev/zero | tr '\\0' x; echo; echo loss: 1.5; echo done;"
        " sleep 60"
    )
    assert points(ended(job)) == [("loss", 2.5), ("loss", 1.5)]


def test_a_label_gives_the_pattern(ended, run) -> None:
    label = {"dltools.pattern": r"score (?P<f1>[0-9.]+) at (?P<step>\d+)"}
    job = run("echo loss: 9; echo score 0.5 at 7; echo done; sleep 60", labels=label)
    rows = ended(job, "--pattern", "loss: (?P<other>.*)")
    assert points(rows) == [("f1", 0.5)]
    (point,) = (row for row in rows if row["kind"] == "progress")
    assert (point["step"], point["source"]) == (7, "pattern")


def test_a_container_that_keeps_no_log_is_a_gap(sample, run) -> None:
    job = run("echo loss: 0.5; sleep 60", log_config={"Type": "none"})
    rows = sample()
    assert points(rows) == []
    row = row_of(rows, job)
    assert row["gap"].startswith("logs: ")
    assert row["cpu_seconds"] > 0


def test_verbose_names_the_gaps(tool, run) -> None:
    job = run(log_config={"Type": "none"})
    done = tool("dl-probe", *run.only, "-v")
    lines = done.stderr.decode().splitlines()
    assert any(line.startswith(f"dl-probe: {job.name}: logs: ") for line in lines)
