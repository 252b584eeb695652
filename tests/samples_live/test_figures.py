"""Figures of live runs: worked examples."""

from dataclasses import replace

from runner import figures
from runner.figures import Figure
from runner.measured import LiveJob, LiveRun, Measured, load, save


def job(name: str, arrival: float, completion: float | None, *progress: float) -> LiveJob:
    points = [(time, 1.0) for time in progress]
    return LiveJob(name, arrival, completion, 0 if completion else None, points, [], None)


def run(arm: str, *jobs: LiveJob, makespan: float = 20.0) -> LiveRun:
    return LiveRun(arm, list(jobs), makespan, 25.0, 0.5)


ALONE = {"a": job("a", 0, 10.0, 2, 4, 6, 8, 10), "b": job("b", 0, 4.0, 2, 4)}
NOOP = run("noop", job("a", 0, 20.0, 4, 8, 12, 16, 20), job("b", 5, 10.0, 6, 10))
SRTF = run("srtf", job("a", 0, 14.0, 2, 4, 10, 12, 14), job("b", 5, 4.0, 2, 4), makespan=14.0)
MEASURED = Measured("list", 2, "2026-01-31", cores={"a": 2, "b": 2}, alone=ALONE, runs=[NOOP, SRTF])


def test_ratios_are_to_docker_alone() -> None:
    ratio = figures.to_noop(MEASURED, [SRTF], figures.mean_completion)
    assert ratio == Figure(0.6, 0.6, 0.6)


def test_a_ratio_is_to_docker_alone_in_the_same_repetition() -> None:
    later = [
        replace(run("noop", job("a", 0, 40.0)), repetition=2),
        replace(run("srtf", job("a", 0, 10.0)), repetition=2),
    ]
    measured = replace(MEASURED, runs=[NOOP, *later])
    ratio = figures.to_noop(measured, measured.of_arm("srtf"), figures.mean_completion)
    assert ratio == Figure(0.25, 0.25, 0.25)


def test_efficiency_is_the_work_alone_over_the_makespan() -> None:
    assert figures.efficiency(MEASURED, NOOP) == 14 / 20
    assert figures.efficiency(MEASURED, SRTF) == 1


def test_an_endless_job_alone_has_no_efficiency() -> None:
    endless = Measured("list", 2, "", alone={"a": job("a", 0, None, 2, 4)})
    assert figures.efficiency(endless, run("noop", job("a", 0, None))) is None


def test_the_latest_first_report_counts() -> None:
    assert figures.late_reports(MEASURED, NOOP) == 3
    assert figures.late_reports(MEASURED, SRTF) == 1


def test_a_job_that_failed_leaves_no_mean() -> None:
    failed = LiveJob("b", 0, None, 1, [], [], None)
    assert figures.mean_completion(run("noop", job("a", 0, 3.0), failed)) is None
    assert figures.mean_completion(run("noop", job("a", 0, 3.0), job("b", 0, None))) == 3


def test_useful_work_is_the_share_of_the_host_that_is_not_lost() -> None:
    width, done = figures.useful_work(MEASURED, SRTF, 7)
    assert (width, done) == (2, [1, 1, 1 / 3 + 0.5, 1 / 3 + 1, 1 / 3 + 0.5, 1, 1])


def test_satisfied_models_keep_their_targets_in_the_last_seconds() -> None:
    def server(name: str, *values: float) -> LiveJob:
        return LiveJob(
            name, 0, 60.0, 0, [], [(20.0 * n, v) for n, v in enumerate(values)], None, 1.0
        )

    found = run("noop", server("a", 2.0, 1.05), server("b", 1.0, 0.5), server("c", 1.0, 1.2))
    assert figures.satisfied(found) == 1
    assert figures.satisfied(found, until=10.0) == 2
    assert figures.met(found) == 2


def test_what_was_measured_is_kept(tmp_path) -> None:  # type: ignore[no-untyped-def]
    save(MEASURED, tmp_path / "measured.json")
    assert load(tmp_path / "measured.json") == MEASURED
