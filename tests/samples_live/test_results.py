"""RESULTS.md: a row for each arm, the simulator's beside."""

from runner.measured import LiveJob, LiveRun, Measured
from runner.results import results


def run(arm: str, seconds: float, repetition: int = 1) -> LiveRun:
    job = LiveJob("a", 0, seconds, 0, [(seconds / 2, 0.5), (seconds, 0.25)], [], None)
    return LiveRun(arm, [job], seconds, seconds, 0.2, repetition=repetition)


def measured(name: str = "one") -> Measured:
    return Measured(
        name,
        2,
        "2026-01-31",
        cores={"a": 2},
        alone={"a": run("noop", 10).jobs[0]},
        runs=[run("noop", 20), run("srtf", 10), run("noop", 30, 2), run("srtf", 10, 2)],
        spin=0.5,
        bound=9.5,
        simulated={"noop": [{"a": 25.0}], "srtf": [{"a": 12.0}]},
    )


def row(text: str, arm: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {arm} |")]
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_a_row_has_means_with_their_spread_and_what_the_simulator_says() -> None:
    text = results([measured()])
    assert row(text, "noop") == [
        "noop",
        "25.0 (20.0 to 30.0)",
        "25.0 (20.0 to 30.0)",
        "1.00",
        "1.00",
        "0.42 (0.33 to 0.50)",
        "2.63",
        "25.0",
        "25.0",
        "2.50 (2.00 to 3.00)",
        "0.4% (0.0 s)",
    ]
    assert row(text, "srtf")[3:9] == ["0.42 (0.33 to 0.50)"] * 2 + ["1.00", "1.05", "12.0", "12.0"]


def test_the_simulator_is_judged_by_the_arms_that_it_was_not_fitted_to() -> None:
    text = results([measured()])
    assert "over 1 rows" in text
    assert "median 20%, worst 20%" in text
    assert "Rows with an error over 35%: none." in text
    assert text.endswith("overlap: none.\n")


def test_arms_in_another_order_than_live_are_named() -> None:
    wrong = measured()
    wrong.simulated["srtf"] = [{"a": 30.0}, {"a": 32.0}]
    text = results([wrong])
    assert "overlap: noop and srtf of one." in text
    assert "srtf of one (210%; live 10.0 s, simulated 30.0 to 32.0 s)" in text
    assert row(text, "srtf")[7] == "31.0 (30.0 to 32.0)"


def test_arms_that_may_go_either_way_in_the_simulator_are_in_no_order() -> None:
    chance = measured()
    chance.simulated["srtf"] = [{"a": 12.0}, {"a": 40.0}]
    assert results([chance]).endswith("overlap: none.\n")


def test_servers_have_a_table_of_their_own() -> None:
    points = [(float(second), 0.1) for second in range(60)]
    job = LiveJob("s", 0, 60.0, 0, [], points, None, 0.105)
    served = Measured(
        "dqoes",
        2,
        "2026-01-31",
        serves=True,
        runs=[LiveRun("noop", [job], 60.0, 60.0, 0.6)],
        simulated_satisfied={"noop": 1.0},
    )
    text = results([served])
    assert row(text, "noop") == ["noop", "1 of 1", "1 of 1", "1 of 1", "1.0", "0.5% (0.0 s)"]
    assert "The simulator" not in text
