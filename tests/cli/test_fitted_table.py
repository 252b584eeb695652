"""Tables at every width: names give way, numbers and settings are whole."""

import io
import re
from datetime import UTC, datetime

import pytest
from helpers.observed_rows import observed_hosts
from rich.table import Table

from dltools.actions.plans import Op, Result, Status
from dltools.actions.settings import Settings
from dltools.cli.apply.tables import results_table
from dltools.cli.destinations import make_console
from dltools.cli.fitted_table import FittedTable, runs_table
from dltools.cli.plan.tables import decisions_table
from dltools.cli.probe.tables import containers_table
from dltools.plan.outcome.decisions import JobDecision
from dltools.plan.policy.interface import Allocation

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LONG = "a-container-with-a-name-of-many-words-and-a-number-at-its-end-12345"


def shown(table: Table, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    make_console(out).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def results() -> Table:
    before = {"cpus": None, "weight": 1024}
    after = {"cpus": 12.875, "weight": 262144, "cpuset": "0-127"}
    return results_table(
        [
            Result(1, Status.APPLIED, "i", LONG, {"weight": 10}, {"weight": 1024}),
            Result(2, Status.UNCHANGED, "i", "short", before, after, "the engine said 404 of it"),
        ]
    )


def best() -> Table:
    row = {"policy": "specon", "realize": "priority", "set": "itval=30 load=jobs",
           "makespan": 12367.64, "makespan_ratio": 0.8812, "longest_completion": 12367.6,
           "mean_completion": 7615.52, "mean_completion_ratio": 1.25, "time_to_first": 3446.3,
           "satisfied": 12.34, "unfinished": 17, "failed": 3}  # fmt: skip
    return runs_table([row, {**row, "policy": "noop", "realize": "quota"}])


def jobs() -> Table:
    row = {"policy": "noop", "name": LONG, "node": "a-host-of-a.cluster.org", "arrival": 5.0,
           "finish": 12367.6, "completion": 12362.6, "first": 5867.6, "cpu": 21848.4}  # fmt: skip
    return runs_table([row, {**row, "finish": None, "exit_code": 137}])


WHOLE = {
    results: ["weight 10", "weight 1024", "12.875 cpus", "weight 262144",
              "on CPUs 0-127", "404"],
    best: ["12367.6 s", "(0.88)", "7615.5 s", "(1.25)", "3446.3 s", "12.34", "17", "3", "priority",
           "quota", "itval=30", "load=jobs"],
    jobs: ["5.0 s", "12367.6 s", "12362.6 s", "5867.6 s", "21848.4 s", "failed (137)"],
}  # fmt: skip


@pytest.mark.parametrize("width", [30, 40, 60, 79, 80, 81, 100, 120, 200])
@pytest.mark.parametrize("make", WHOLE, ids=lambda make: make.__name__)
def test_no_number_is_cut_and_no_line_is_too_long(make, width, monkeypatch) -> None:
    lines = shown(make(), width, monkeypatch)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for value in WHOLE[make]:
        assert re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.…])", text), value


@pytest.mark.parametrize("make", WHOLE, ids=lambda make: make.__name__)
def test_a_sliver_of_a_screen_breaks_no_table(make, monkeypatch) -> None:
    for width in range(1, 10):
        assert shown(make(), width, monkeypatch)
    assert shown(make(), 0, monkeypatch) == shown(make(), 80, monkeypatch)  # 0: not known


def test_a_table_that_fits_is_not_changed(monkeypatch) -> None:
    lines = shown(results(), 200, monkeypatch)
    assert lines[2].split("   ")[:2] == [LONG, "applied"]
    assert len(lines) == 4


def test_what_does_not_fit_comes_below_with_its_names(monkeypatch) -> None:
    lines = shown(best(), 40, monkeypatch)
    heads = [line.split() for line in lines if line.startswith("POLICY")]
    assert len(heads) > 1
    assert {word for head in heads for word in head} >= {"MAKESPAN", "SATISFIED", "FAILED"}


def test_wide_letters_count_twice(monkeypatch) -> None:
    table = FittedTable("NAME", "VALUE:right")
    table.add_row("深度学习容器" * 4, "1234567.89 s")
    assert shown(table, 30, monkeypatch)[-1].endswith("1234567.89 s")


SERVICES = ("resnet-trainer", "gru-trainer", "db")
COMPOSED = [f"vision-team-{name}-{number}" for name in SERVICES for number in (1, 2)]
WEIGHTS: Settings = {"weight": 1024.0}


def planned(names: list[str], reason: str = "growing: growth of loss 1.57") -> Table:
    """The table of a plan by which each job waits."""
    return decisions_table(
        [
            JobDecision(
                "h", name, name, Allocation(0.3, "NL", reason), WEIGHTS, {"weight": 10.0},
                f"{reason}; {number} of {len(names)} in the queue", Op.UPDATE,
                role="training: reports loss",
            )
            for number, name in enumerate(names, 1)
        ],
        wide=False,
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize(
    "names", [COMPOSED[:3], [f"{one}-{n}" for n in range(4) for one in COMPOSED]]
)
def test_names_of_compose_are_whole_and_a_row_has_two_lines(width, names, monkeypatch) -> None:
    lines = shown(planned(names), width, monkeypatch)
    assert [line.split()[0] for line in lines[2:] if not line.startswith(" ")] == names
    assert len(lines) - 2 <= 2 * len(names)
    assert max(map(len, lines)) <= width
    assert f"1 of {len(names)} in the" in "\n".join(lines)


def test_the_gist_of_a_reason_comes_first_and_the_rest_where_there_is_room(monkeypatch) -> None:
    assert shown(planned(["a"]), 300, monkeypatch)[-1].endswith(
        "weight 1024 -> 10   1 of 1 in the queue; growing; growth of loss 1.57; "
        "training: reports loss"
    )
    short = " ".join(shown(planned(["a"]), 66, monkeypatch)[2:])
    assert "1 of 1 in the queue" in " ".join(short.split())
    assert short.rstrip().endswith("…")


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_sentence_has_the_whole_width_wherever_it_stands(width, monkeypatch) -> None:
    why = "watching (NL to WL): growth efficiency 0.0168 of val_loss < alpha 0.03"
    lines = shown(planned(COMPOSED[:2], why), width, monkeypatch)
    found = [line for line in lines if "in the queue" in line]
    assert len(found) == 2
    assert all("growth efficiency 0.0168 of" in line for line in found)


def test_long_names_of_one_project_are_told_apart(monkeypatch) -> None:
    kinds = ("embedding", "ranking")
    names = [f"recommendation-team-of-the-lab-{kind}-trainer-{n}" for kind in kinds for n in "12"]
    lines = shown(planned(names), 60, monkeypatch)
    cells = [line.split()[0] for line in lines[2:] if not line.startswith(" ")]
    assert len(set(cells)) == len(names)
    assert all(
        "…" in cell and cell[-10:] == name[-10:] for cell, name in zip(cells, names, strict=True)
    )


def observed(state: str = "running") -> Table:
    row = {"time": NOON, "host": "h", "kind": "container", "container_id": "i", "state": state,
           "container_name": COMPOSED[0], "cpu_limit_cores": 2.0, "thread_count": 4,
           "cpu_seconds": 1.0, "started_at": NOON, "labels": None, "role": "server",
           "memory_working_set_bytes": 1 << 27, "role_reason": "publishes port 3000"}  # fmt: skip
    return containers_table(observed_hosts([row]), 80)


def test_a_narrow_table_of_containers_says_the_role_in_a_word(monkeypatch) -> None:
    assert shown(observed(), 80, monkeypatch)[-1].split() == [
        COMPOSED[0], "-", "2", "128", "MiB", "-", "server"
    ]  # fmt: skip
    assert f"{COMPOSED[0]} (restarting)" in shown(observed("restarting"), 80, monkeypatch)[-1]


# Results of one plan after the other


def streamed(
    width: int, monkeypatch: pytest.MonkeyPatch, *groups: tuple[str, list[Result]]
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    for number, (time, found) in enumerate(groups):
        make_console(out).print(results_table(found, None, time, has_header=not number))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def quota(name: str, before: float | None, after: float | None, note: str = "") -> Result:
    status = Status.STALE if note else Status.APPLIED
    return Result(1, status, "i", name, {"cpus": before}, {"cpus": after}, note or None)


def test_a_stream_has_one_header_and_its_rows_are_below_each_other(monkeypatch) -> None:
    lines = streamed(
        100,
        monkeypatch,
        ("12:00:00", [quota("resnet", None, 0.667), quota("lstm", None, 1.333)]),
        ("12:00:02", [quota("a-training", 0.667, None)]),
        ("12:00:04", [quota("lstm", 1.333, 0.5, "the container is exited")]),
    )
    times = [line.split()[0] for line in lines if "TIME" in line or "12:00" in line]
    assert times == ["TIME", "12:00:00", "12:00:02", "12:00:04"]
    rows = [line for line in lines if "cpus" in line]
    assert len(rows) == len(lines) - 2
    for word in ("CONTAINER", "RESULT", "BEFORE", "AFTER"):
        at = lines[0].index(word)
        assert all(row[at - 1] == " " != row[at] for row in rows), word
    assert lines[-1].endswith("the container is exited")
    assert rows[1].startswith("           lstm")


def test_a_row_that_needs_more_room_is_as_narrow_as_the_screen(monkeypatch) -> None:
    wide = Result(1, Status.APPLIED, "i", "a", {"cpus": 1.0}, {"turn_s": 16.0, "group": 123456789})
    found = ("12:00:00", [quota("resnet", None, 0.667)]), ("12:00:02", [wide])
    lines = streamed(100, monkeypatch, *found, found[0])
    assert sum("TIME" in line for line in lines) == 1
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_stream_is_as_narrow_as_the_screen(width, monkeypatch) -> None:
    groups = [("12:00:00", [quota(LONG, None, 0.667)]), ("12:00:02", [quota("lstm", 1.5, 0.25)])]
    lines = streamed(width, monkeypatch, *groups, groups[0])
    assert max(map(len, lines)) <= max(width, 20)
    assert "0.667" in "".join(lines)
