"""The live table: what it shows, at several widths, with and without colour."""

import pytest
from helpers.observed_rows import at, container, gpu, node, point
from rich.console import Console

from dltools.cli.probe.tables import live_view
from dltools.observations.newest_rows import ObservedHosts
from dltools.observations.table import Row, to_table


def sample(second: int, names: list[str], **changes: object) -> list[Row]:
    memory = {"memory_total_bytes": 8 << 30, "memory_available_bytes": 6 << 30}
    rows = [node(second, 4.0) | memory | {"cpu_seconds": 3.0 * second}]
    counted = {"cpu_throttled_seconds": 0.25 * second, "memory_working_set_bytes": 300 << 20}
    for name in names:
        more = {"thread_count": 7, **counted, **changes}
        rows.append(container(second, name, 1.5 * second, **more))
        rows += [point(second + k / 1000, name, 9 - k / 9) for k in range(20)]
        rows.append(point(second, name, 1 / second, "val_loss"))
    return rows


def drawn(width: int, height: int, samples: list[list[Row]]) -> list[str]:
    console = Console(width=width, height=height, color_system=None)
    host = ObservedHosts()
    for rows in samples:
        host.take(to_table(rows).to_pylist())
    with console.capture() as capture:
        console.print(live_view(host, width, height))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_row_per_container_at_80_columns() -> None:
    header, names, _, row = drawn(80, 24, [sample(1, ["job"]), sample(3, ["job"])])
    assert header == "node  00:00:03Z  CPU 3.00 of 4  memory 2 GiB of 8 GiB"
    assert names.split() == ["CONTAINER", "CPU", "LIMIT", "MEMORY", "PROGRESS", "ROLE"]
    assert row.split() == ["job", "1.50", "2", "300", "MiB", "val_loss=0.3333", "loss=6.889", "-"]
    assert len(row) <= 80


def test_a_wide_screen_shows_more() -> None:
    _, names, _, row = drawn(200, 24, [sample(1, ["job"]), sample(3, ["job"])])
    assert {"STATE", "THREADS"} <= {*names.split()}
    assert {"running", "7"} <= {*row.split()}


def test_what_does_not_fit_is_counted() -> None:
    lines = drawn(80, 10, [sample(1, [f"job-{n}" for n in range(30)])])
    assert len(lines) <= 10
    assert lines[-1] == "and 25 more"


@pytest.mark.parametrize("width", [40, 60, 79, 80, 119, 120, 121, 200, 500])
def test_no_line_is_longer_than_the_screen(width) -> None:
    names = ["x" * 100, "y"]
    for line in drawn(width, 24, [sample(1, names, state="paused"), sample(2, names)]):
        assert len(line) <= width


def several(second: int) -> list[Row]:
    """A sample of two hosts, and a third one that does not answer."""
    rows = [
        row | {"host": host, "container_id": f"{host}{row.get('container_id', '')}"}
        for host in ("b", "a")
        for row in sample(second, ["job"])
    ]
    silent = {"time": at(second), "host": "c", "kind": "node", "gap": "no sample: timed out"}
    return [*rows, silent]


def test_several_hosts_have_a_line_each() -> None:
    lines = drawn(100, 20, [several(1), several(2)])
    assert lines[0].startswith("a  00:00:02Z  CPU 3.00 of 4")
    assert lines[2] == "c  00:00:02Z  no sample: timed out"
    assert lines[3].split()[:2] == ["HOST", "CONTAINER"]
    assert [line.split()[:2] for line in lines[5:7]] == [["b", "job"], ["a", "job"]]
    for width in (40, 60, 80):
        assert max(map(len, drawn(width, 20, [several(1), several(2)]))) <= width


def test_no_escape_in_a_name_is_drawn() -> None:
    rows = sample(1, ["evil\x1b[31m\u202ejob"], state="paused\x1b")
    for row in rows:
        row["host"] = "node\x9b"
        if row["kind"] == "progress":
            row["metric"] = "loss\x1b]0;x\x07"
    text = "".join(drawn(200, 24, [rows]))
    assert text.isprintable()
    assert "evil?[31m?job   paused?" in text


def test_a_paused_container_says_so() -> None:
    assert "paused, 2 " in drawn(80, 24, [sample(1, ["job"], state="paused")])[3]
    assert "job (restarting)" in drawn(80, 24, [sample(1, ["job"], state="restarting")])[3]


def test_a_node_of_a_part_of_a_cpu_is_no_limit() -> None:
    """All containers together are held to 1.5 of two CPUs: none has a quota of its own."""
    rows = sample(1, ["job"], cpu_limit_cores=1.5, cpuset="0-1")
    rows[0]["cpu_count"] = 1.5
    assert "1.50       -   300 MiB   loss" in drawn(80, 24, [rows])[3]


def test_gpus_have_a_column_where_there_are_some() -> None:
    used = gpu(0, "job", 0, 0.97, gpu_memory_used_bytes=11 << 30)
    lines = drawn(100, 24, [[*sample(1, ["job"]), used]])
    assert "GPU" in lines[1]
    assert "97 % 11 GiB" in lines[3]


def test_the_label_chooses_the_metric() -> None:
    labels = '{"dltools.metric": "loss"}'
    samples = [sample(second, ["job"], labels=labels) for second in (1, 2, 3)]
    assert "   loss=6.889 val_loss=" in drawn(80, 24, samples)[3]


def test_nothing_running_is_said() -> None:
    assert drawn(80, 24, [sample(1, [])])[-1].startswith("no containers are running")
