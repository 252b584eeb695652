"""Times alone, of several runs."""

from runner.measured import LiveJob, Measured


def job(seconds: float) -> LiveJob:
    return LiveJob("a", 0, seconds, 0, [(seconds / 2, 0.5)], [], seconds / 4)


def test_a_job_alone_is_the_mean_of_its_runs() -> None:
    found = Measured("list", 2, "2026-01-31")
    for seconds in (8.0, 16.0):
        found.add_alone({"a": job(seconds)})
    assert found.seconds_alone == {"a": [8.0, 16.0]}
    assert found.alone["a"] == job(12.0)


def test_a_job_without_an_end_stays_as_it_was() -> None:
    endless = LiveJob("a", 0, None, None, [(1.0, 0.5)], [], None)
    found = Measured("list", 2, "2026-01-31")
    found.add_alone({"a": endless})
    found.add_alone({"a": endless})
    assert (found.alone, found.seconds_alone) == ({"a": endless}, {})
