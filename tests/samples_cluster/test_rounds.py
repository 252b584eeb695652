"""RESULTS.md of the trainings on Swarm nodes: rounds are kept, and a row says how they differ."""

import pytest
from live_cluster.outcomes import read_outcomes, write_outcomes
from live_cluster.report import report
from live_cluster.services import LiveJob, LiveRun

from dltools.errors import DataError
from dltools.sim.workload_file import read_workload

WORKLOAD = read_workload(
    """
[[kind]]
name = "k"
work = 10
curve = { kind = "exponential", start = 1, end = 0, rate = 1 }
[[job]]
name = "a"
kind = "k"
[[job]]
name = "b"
kind = "k"
""",
    "two",
)


def run(arm: str, a: float, b: float, *, loss: str = "0.5", moves: bool = False) -> LiveRun:
    nodes, resumed = (["node1", "node2"], [(3, 4)]) if moves else (["node1"], [])
    return LiveRun(
        arm,
        [
            LiveJob("a", 0.0, a, nodes, resumed, loss, ["c1"]),
            LiveJob("b", 1.0, b, ["node1"], [], "0.25", ["c2"]),
        ],
    )


ROUNDS = [
    ("2026-01-30", [run("noop", 20, 40), run("specon", 10, 20, moves=True)]),
    ("2026-01-31", [run("noop", 24, 40), run("specon", 6, 24)]),
]
SAID = {"noop": {"a": 20.0, "b": 41.0}, "specon": {"a": 10.0, "b": 20.0}}


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_ratios_are_to_the_same_round_and_have_their_range() -> None:
    text = report(WORKLOAD, ROUNDS, SAID)
    assert "2 rounds, 2026-01-30 and 2026-01-31." in text
    assert row(text, "specon") == [
        "specon",
        "23.0 (21.0 to 25.0)",
        "15.0",
        "0.56 (0.51 to 0.61)",
        "0.48 (0.47 to 0.50)",
        "0.38 (0.25 to 0.50)",
        "1, 0",
        "20.0",
        "-13 %",
        "15.0",
    ]
    assert row(text, "a") == [
        "a",
        "22.0 (20.0 to 24.0)",
        "8.0 (6.0 to 10.0)",
        "node1 (3 to 4) node2; node1",
        "0.5",
    ]


def test_a_loss_that_differs_is_shown() -> None:
    rounds = [*ROUNDS, ("2026-02-01", [run("noop", 20, 40), run("specon", 9, 20, loss="0.7")])]
    assert row(report(WORKLOAD, rounds, SAID), "a")[-1] == "DIFFER: 0.5, 0.7"


def test_rounds_are_read_as_they_were_written(tmp_path) -> None:
    path = tmp_path / "outcomes.jsonl"
    assert read_outcomes(path) == []
    write_outcomes(path, ROUNDS)
    found = read_outcomes(path)
    assert [(day, [run.arm for run in runs]) for day, runs in found] == [
        ("2026-01-30", ["noop", "specon"]),
        ("2026-01-31", ["noop", "specon"]),
    ]
    assert [run.makespan for _, runs in found for run in runs] == [41, 21, 41, 25]
    assert report(WORKLOAD, found, SAID) == report(WORKLOAD, ROUNDS, SAID)
    path.write_text("{}\n")
    with pytest.raises(DataError, match="no outcomes"):
        read_outcomes(path)
