"""What jobs come to together."""

import math

import pytest

from dltools.observations.outcomes import JobResult, satisfies, summarise


def test_a_response_time_is_satisfied_within_a_tenth_of_its_target() -> None:
    assert all(satisfies(value, 1.0) for value in (0.91, 1.09))
    assert not any(satisfies(value, 1.0) for value in (0.89, 1.11))
    assert not satisfies(math.nan, 1.0)
    assert not satisfies(1.0, None)


def test_a_summary_by_hand() -> None:
    found = summarise(
        [
            JobResult("a", "h", 2.0, 2.0, 12.0, first=6.0),
            JobResult("b", "h", 4.0, 4.0, 24.0, first=12.0, final=20.0),
            JobResult("c", "h", 4.0, 4.0, exit_code=1),
            JobResult("s", "h", 0.0, 0.0, 30.0, served=30.0, satisfied=15.0),
        ]
    )
    assert (found.jobs, found.unfinished, found.failed, found.makespan) == (4, 1, 1, 30.0)
    assert (found.mean_completion, found.longest_completion) == (15.0, 20.0)
    assert (found.time_to_first, found.time_to_final) == (6.0, 16.0)
    assert found.satisfied == pytest.approx(0.5)


def test_no_jobs_come_to_nothing_that_is_known() -> None:
    found = summarise([])
    assert found.jobs == 0
    assert all(map(math.isnan, (found.makespan, found.mean_completion, found.satisfied)))
