"""Saved logs as observations: their times, their names, and the command that reads them."""

import io
import json
import sys
import tracemalloc
from collections.abc import Iterator
from itertools import chain
from subprocess import PIPE, Popen

import pytest
from probe.test_log_times import START, rows

from dltools.observations.table import Row
from dltools.probe import saved_logs
from dltools.probe.progress import Automatic, Pattern


def times(text: str) -> list[str]:
    return [f"{row['time']:%d %H:%M:%S}" for row in rows(text, START)]


def test_time_elapsed_is_added_to_the_start() -> None:
    text = "".join(f"step:{n}/9 train_loss:4.5 train_time:{n}500ms x\n" for n in (1, 2))
    assert times(text) == ["31 12:00:01", "31 12:00:02"]


def test_time_elapsed_is_added_to_the_first_stamp() -> None:
    text = "[2026-02-01 10:00:00] begun\nstep:1/9 train_loss:4.5 train_time:90000ms x\n"
    assert times(text) == ["01 10:01:30"]


def test_lines_between_two_stamps_are_spread() -> None:
    text = "[12:00:10] epoch\nloss: 1\nloss: 2\n[12:00:30] epoch\nloss: 3\n"
    assert times(text) == ["31 12:00:10", "31 12:00:20", "31 12:00:30"]
    assert [row["gap"] is None for row in rows(text, START)] == [True, False, True]


def test_without_any_time_points_are_a_second_apart_and_say_so() -> None:
    text = "loss: 1\nnothing\nloss: 2\n"
    assert times(text) == ["31 12:00:00", "31 12:00:01"]
    assert {row["gap"] for row in rows(text, START)} == {"time unknown: rows are one second apart"}
    stamped = "2026-01-31 12:00:05 loss: 1\n2026-01-31 12:00:09 loss: 0.5\n"
    assert times(stamped) == ["31 12:00:05", "31 12:00:09"]
    assert {row["gap"] for row in rows(stamped, START)} == {None}


def test_a_line_without_end_counts() -> None:
    assert [row["value"] for row in rows("loss: 1\nloss: 2", START)] == [1.0, 2.0]


def test_a_pattern_reads_what_nothing_else_does() -> None:
    pattern = Pattern(r"^(?P<epoch>\d+): (?P<loss>[\d.]+)$")
    text = io.BytesIO(b"Finished epoch:  0\n0: 1.58287\n1: 1.07\n")
    found = list(chain.from_iterable(saved_logs.progress_batches(text, "job", pattern, START)))
    assert [(row["epoch"], row["value"]) for row in found] == [(0, 1.58287), (1, 1.07)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a/gru.log"], ["gru"]),
        (["a/gru.log", "a/vae.log"], ["gru", "vae"]),
        (["a/log.txt", "b/log.txt"], ["a/log", "b/log"]),
        (["x/a/log.txt", "y/a/log.txt", "z.txt"], ["x/a/log", "y/a/log", "z"]),
        (["-", "a.log"], ["stdin", "a"]),
        (["a.log", "a.log"], ["a", "a"]),
    ],
)
def test_a_file_stands_for_a_container(files, expected) -> None:
    assert saved_logs.container_names(files) == expected


def test_the_command_reads_logs_and_the_pipe_goes_on(tool, tmp_path) -> None:
    fast, flat = tmp_path / "fast.log", tmp_path / "flat.log"
    fast.write_text("".join(f"[12:00:{s:02}] loss: {10 - s / 6}\n" for s in range(60)))
    flat.write_text("".join(f"[12:00:{s:02}] loss: 5\n" for s in range(60)))
    probed = tool("dl-probe", str(fast), str(flat))
    assert probed.returncode == 0, probed.stderr
    options = ["--realize", "quota", "--set", "itval=5", "--every"]
    planned = tool("dl-plan", *options, input=probed.stdout)
    assert planned.returncode == 0, planned.stderr
    assert b"equal shares of one CPU are assumed" in planned.stderr
    actions = [r for r in map(json.loads, planned.stdout.splitlines()) if r["kind"] == "action"]
    assert {action["container"]["name"] for action in actions} == {"flat"}


def test_standard_input_is_a_log_too(tool) -> None:
    options = ["--start", "2026-01-31T12:00", "--format", "jsonl"]
    done = tool("dl-probe", "-", *options, input=b"loss: 1\n")
    (row,) = map(json.loads, done.stdout.splitlines())
    assert (row["container_name"], row["time"]) == ("stdin", "2026-01-31T12:00:00.000000Z")


def test_metrics_are_listed(tool, tmp_path) -> None:
    log = tmp_path / "job.log"
    log.write_text("step 1: train loss 3.5, val loss 3.25\nstep 2: train loss 3.0, val loss nan\n")
    listed = tool("dl-probe", str(log), "--list-metrics", env={"COLUMNS": "120"}).stdout.decode()
    assert [line.split() for line in listed.splitlines()[2:4]] == [
        ["job", "val_loss", "min", "named", "2", "3.25", "nan", "val_loss"],
        ["job", "train_loss", "min", "named", "2", "3.5", "3", "train_loss"],
    ]
    assert listed.splitlines()[4:] == [
        "job: judged by val_loss: a loss or score of an evaluation, better when smaller; the label "
        "dltools.metric chooses another"
    ]


def test_rows_come_out_while_the_log_is_read() -> None:
    command = [sys.executable, "-c", "from dltools.cli.probe import main; main()"]
    command += ["-", "--format", "jsonl"]
    with Popen(command, stdin=PIPE, stdout=PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for value in (1.5, 2.5):
            line = f"2026-01-31 12:00:00 step {value:.0f} loss: {value}\n"
            process.stdin.write(line.encode())
            assert json.loads(process.stdout.readline())["value"] == value
        process.stdin.close()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_log() -> None:
    def peak(lines: int) -> int:
        text = "".join(f"step {n}: train loss 3.5, val loss 3.25\n" for n in range(99))
        log = _Endless(text.encode(), lines // 99)
        tracemalloc.start()
        found = saved_logs.progress_batches(log, "job", Automatic())  # type: ignore[arg-type]
        count = sum(len(batch) for batch in found)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == 2 * (lines // 99) * 99
        return used

    peak(1_000)  # expressions are compiled, caches fill
    assert peak(8_000) < 1.2 * peak(2_000)


class _Endless:
    """A log of so many times a text, a text at a read."""

    def __init__(self, text: bytes, times: int) -> None:
        self._text, self._left = text, times

    def read(self, _: int) -> bytes:
        self._left -= 1
        return self._text if self._left >= 0 else b""


def test_several_logs_are_merged_by_time_and_each_keeps_its_order() -> None:
    def log(name: str, *seconds: int) -> Iterator[list[Row]]:
        text = "".join(f"[12:00:{s:02}] loss: {s}\n" for s in seconds)
        return saved_logs.progress_batches(io.BytesIO(text.encode()), name, Automatic(), START)

    (batch,) = saved_logs.merged([log("a", 1, 5, 4, 9), log("b", 2, 6)])
    found = [(row["container_name"], row["value"]) for row in batch]
    assert found == [("a", 1), ("b", 2), ("a", 5), ("a", 4), ("b", 6), ("a", 9)]


def test_what_was_dropped_as_noise_is_said(tool) -> None:
    text = "average_loss: 51200\n" + "".join(f"step {n} loss: {n}.5\n" for n in range(9))
    listed = tool("dl-probe", "-", "--list-metrics", input=text.encode()).stdout
    assert listed.decode().splitlines()[-2:] == [
        "stdin: judged by loss: the training loss, better when smaller",
        "stdin: dropped as noise, because no similar lines followed: average_loss (1)",
    ]


@pytest.mark.parametrize(
    ("line", "choice"),
    [
        ("loss: 0.{n} val_acc: nan", "judged by loss: the training loss, better when smaller"),
        ("loss: nan", "judged by nothing: no metric has been a finite number"),
        (
            "Loss_D: 0.{n} Loss_G: 1.{n}",
            "judged by loss_g: a loss, better when smaller; while "
            "it is flat it says nothing; the label dltools.metric chooses another",
        ),
    ],
)
def test_metrics_that_say_nothing_are_listed_as_such(tool, line, choice) -> None:
    text = "".join(f"step {n} {line}\n".replace("{n}", str(n)) for n in range(9))
    listed = tool("dl-probe", "-", "--list-metrics", input=text.encode()).stdout
    assert listed.decode().splitlines()[-1] == f"stdin: {choice}"


def test_prometheus_text_has_the_newest_value_of_a_long_log(tool, tmp_path) -> None:
    log = tmp_path / "job.log"
    lines = (f"step {n}: train loss 3.5, val loss {n}.25{' ' * 200}\n" for n in range(6_000))
    log.write_text("".join(lines))
    text = tool("dl-probe", str(log), "--format", "prom").stdout.decode()
    values = [line for line in text.splitlines() if line.startswith("dltools_progress_value{")]
    assert len(values) == 2
    assert [line.split()[-1] for line in values if "val_loss" in line] == ["5999.25"]
    assert text.count("# HELP dltools_progress_value ") == 1


def test_a_long_log_becomes_one_file_of_a_directory(tool, tmp_path) -> None:
    log, folder = tmp_path / "job.log", tmp_path / "recorded"
    log.write_text("".join(f"epoch 1 step {n}: train loss 3.5{' ' * 400}\n" for n in range(6_000)))
    done = tool("dl-probe", str(log), "-o", f"{folder}/")
    assert done.returncode == 0, done.stderr
    assert len(list(folder.rglob("*.parquet"))) == 1


def test_a_table_of_a_log_shows_its_metrics(tool) -> None:
    done = tool("dl-probe", "-", "--format", "table", input=b"loss: 1\nloss: 2\n")
    shown = " ".join(done.stdout.decode().splitlines()[2].split())
    assert shown == "stdin loss min named 2 1 2"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["no-such.log"], 74, "no-such.log: no such file; --name selects containers"),
        (["/"], 74, "/: is a directory"),
        (["-", "-i", "1"], 2, "--interval is for containers"),
        (["--start", "2026-01-31"], 2, "--start is for saved logs: give a LOG"),
        (["-", "--start", "soon"], 2, "is not a time"),
        (["--list-metrics", "-i", "1"], 2, "--list-metrics excludes"),
        (["-", "--format", "csv", "-o", "/tmp/"], 2, "a directory holds Parquet"),
    ],
)
def test_wrong_usage_is_said_in_a_line(tool, arguments, code, said) -> None:
    done = tool("dl-probe", *arguments, input=b"")
    assert done.returncode == code
    assert said in done.stderr.decode()
    assert done.stdout == b""


def test_names_are_whole_in_a_file(tool, tmp_path) -> None:
    names = [f"val_{'very_' * 11}long_{which}_loss" for which in ("first", "second")]
    lines = [f"epoch {n} {names[0]}: 0.{n}5 {names[1]}: 0.{n}6" for n in range(1, 5)]
    log = tmp_path / f"{'job' * 30}.log"
    log.write_text("\n".join(lines))
    listed = tool("dl-probe", str(log), "--list-metrics", env={"COLUMNS": ""}).stdout.decode()
    assert all(name in listed for name in names)
    assert log.stem in listed.splitlines()[2]
