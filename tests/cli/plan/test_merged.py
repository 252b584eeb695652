"""Several inputs of dl-plan: recordings, pipes, a FIFO for each host."""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.encoding import encode
from helpers.observed_rows import container, node, point
from helpers.tools import complaint, records

from dltools.actions.plan_lines import load_plans
from dltools.cli.plan.sample_stream import MOST_AHEAD, Merged
from dltools.observations.formats.arrow import FORMAT as ARROW
from dltools.observations.formats.base import Format
from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.table import Row, to_table

HOSTS = ("a", "b")
SAMPLES = 8


def sample(host: str, number: int) -> list[Row]:
    """Two jobs on a host: the loss of one falls, that of the other does not."""
    now = 2.0 * number
    rows = [
        node(now, host=host),
        *(container(now, name, now) for name in (f"{host}-fast", f"{host}-flat")),
        point(now, f"{host}-fast", 100 - 5 * now),
        point(now, f"{host}-flat", 1.0),
    ]
    return [row | {"host": host} for row in rows]


def recorded(format_: Format, *hosts: str) -> bytes:
    numbers = range(SAMPLES)
    together = ([row for host in hosts for row in sample(host, number)] for number in numbers)
    return encode(format_, *map(to_table, together))


def files(tmp_path: Path, format_: Format, suffix: str) -> list[Path]:
    paths = [tmp_path / f"{host}.{suffix}" for host in HOSTS]
    for path, host in zip(paths, HOSTS, strict=True):
        path.write_bytes(recorded(format_, host))
    return paths


def without_input(output: bytes) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "input"} for one in records(output)]


OPTIONS = ("--set", "itval=4", "--realize", "quota")


@pytest.mark.parametrize("policy", ["flowcon", "specon"])
def test_recordings_of_several_hosts_are_merged_by_time(tool, tmp_path, policy) -> None:
    options = ("--policy", policy, *OPTIONS)
    together = tool("dl-plan", *options, input=recorded(PARQUET, *HOSTS))
    apart = tool("dl-plan", *options, *files(tmp_path, PARQUET, "parquet"))
    assert apart.returncode == 0, apart.stderr
    assert without_input(apart.stdout) == without_input(together.stdout)
    (plan,) = (record for record in records(apart.stdout) if record["kind"] == "plan")
    assert plan["input"]["rows"] == 2 * SAMPLES * 5


def test_files_of_streams_and_other_formats_merge_too(tool, tmp_path) -> None:
    mixed = [files(tmp_path, PARQUET, "parquet")[0], files(tmp_path, ARROW, "arrow")[1]]
    found = tool("dl-plan", *OPTIONS, *mixed)
    together = tool("dl-plan", *OPTIONS, input=recorded(PARQUET, *HOSTS))
    assert without_input(found.stdout) == without_input(together.stdout)


def test_the_order_of_the_inputs_does_not_matter_to_the_plan(tool, tmp_path) -> None:
    one, two = files(tmp_path, PARQUET, "parquet")
    found = [tool("dl-plan", *OPTIONS, *order).stdout for order in ((one, two), (two, one))]
    assert without_input(found[0]) == without_input(found[1])


def test_an_input_is_named_once(tool) -> None:
    done = tool("dl-plan", "x", "x")
    assert done.returncode == 2 and b"x is named twice" in done.stderr


def test_a_missing_input_is_told(tool, tmp_path) -> None:
    done = tool("dl-plan", *files(tmp_path, PARQUET, "parquet"), tmp_path / "none")
    assert done.returncode == 74
    assert "none: no such file" in complaint(done.stderr)


@pytest.fixture
def fifos(tmp_path: Path) -> Iterator[list[Path]]:
    """A FIFO for each host, which a thread writes a stream into."""
    paths = [tmp_path / host for host in HOSTS]
    for path in paths:
        os.mkfifo(path)
    yield paths


def written(path: Path, host: str, count: int = SAMPLES, *, cut: bool = False) -> threading.Thread:
    """Write samples into a FIFO, the last one cut off if asked."""

    def write() -> None:
        with path.open("wb") as out:
            made = ARROW.writer(out)
            for number in range(count):
                made.write(to_table(sample(host, number)))
                time.sleep(0.05)
            if cut:
                out.write(b"\xff\xff\xff\xff\x08\x02\0\0")
            else:
                made.close()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def test_a_fifo_for_each_host_makes_plans_for_all(tool, fifos) -> None:
    for path, host in zip(fifos, HOSTS, strict=True):
        written(path, host)
    done = tool("dl-plan", *OPTIONS, *fifos)
    assert done.returncode == 0, done.stderr
    plans = list(load_plans(done.stdout.splitlines(), "plans"))
    assert len(plans) >= SAMPLES // 2
    assert plans[-1].input["rows"] == 2 * SAMPLES * 5
    assert set(plans[-1].classes) == set(HOSTS)


def test_a_pipe_that_is_cut_off_ends_no_other(tool, fifos) -> None:
    written(fifos[0], "a")
    written(fifos[1], "b", 2, cut=True)
    done = tool("dl-plan", *OPTIONS, *fifos)
    assert done.returncode == 1
    said = complaint(done.stderr)
    assert "damaged or truncated Arrow stream" in said
    assert "the plans continue without it" in said
    plans = [record for record in records(done.stdout) if record["kind"] == "plan"]
    assert plans[-1]["input"]["rows"] == (SAMPLES + 2) * 5


@pytest.mark.slow
def test_a_pipe_that_waits_holds_up_no_other(tool, fifos) -> None:
    written(fifos[0], "a")
    quiet = os.open(fifos[1], os.O_RDWR)  # its writer says nothing
    running = tool.begin("dl-plan", *OPTIONS, *fifos)
    begun = time.monotonic()
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["kind"] == "plan"
    assert time.monotonic() - begun < 60
    running.kill()
    running.wait()
    os.close(quiet)
    running.wait()


def test_what_is_done_once_is_told_once(tool) -> None:
    """A migration stands in one plan, also where its source sends no newer sample."""
    tables = []
    for number in range(12):
        now = 10.0 * number
        rows: list[Row] = [node(now, host="idle")]
        if number < 8:
            rows += [node(now), *(container(now, name, 8 * now) for name in ("x", "y"))]
            rows += [point(now, name, 0.5**number) for name in ("x", "y")]
        tables.append(to_table(rows))
    data = encode(ARROW, *tables)
    done = tool("dl-plan", "--policy", "specon", "--set", "pause=0", input=data)
    plans: list[list[str]] = []
    for record in records(done.stdout):
        if record["kind"] == "plan":
            plans.append([])
        elif record.get("op") == "migrate":
            plans[-1].append(record["container"]["name"])
    assert any(plans[:8])
    assert not any(plans[8:])


def test_a_fast_input_waits_for_the_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def tables(_self: Merged, _name: str) -> Iterator[Any]:
        for number in range(10 * MOST_AHEAD):
            read.append(number)
            yield to_table(sample("a", number))

    monkeypatch.setattr(Merged, "_tables", tables)
    merged = Merged(["-"])  # type: ignore[arg-type]
    merged.is_file = False
    first = next(iter(merged.recording().tables))
    time.sleep(0.5)
    assert first.num_rows == len(sample("a", 0))
    assert len(read) <= MOST_AHEAD + 3
