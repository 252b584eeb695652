"""Microsoft's job log and run times: jobs by hand, and faults."""

from __future__ import annotations

import json

import pytest

from dltools.errors import DataError
from dltools.sim.traces.philly import philly_jobs
from dltools.sim.workload import Job

LOG = [{"jobid": "a", "submitted_time": "2017-10-07 01:11:39", "attempts": [
            {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]},
            {"start_time": "2017-10-07 01:14:00", "end_time": "2017-10-07 01:14:10",
             "detail": [{"ip": "m1", "gpus": ["gpu0"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}]},
            {"start_time": "None", "end_time": None, "detail": []}]},
       {"jobid": "b", "submitted_time": "2017-10-07 01:11:29", "attempts": [
            {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:12:05",
             "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
       {"jobid": "never", "submitted_time": "2017-10-07 01:11:00", "attempts": []}]  # fmt: skip


def test_a_philly_job_is_the_sum_of_its_attempts() -> None:
    assert philly_jobs(json.dumps(LOG), "t", 1.0) == [
        Job("a", 10.0, 150.0, 3, spin=0.0), Job("b", 0.0, 5.0, 1, spin=0.0),
    ]  # fmt: skip


def test_run_times_alone_come_a_gap_apart_in_an_order_by_seed() -> None:
    text = "runtime\n" + "".join(f"{k}.0\n" for k in range(20))
    found = philly_jobs(text, "t", 5.0, 1)
    assert [job.arrival for job in found] == [5.0 * k for k in range(19)]  # 0 s never ran
    assert sorted(job.work for job in found) == [float(k) for k in range(1, 20)]
    assert [job.work for job in found] != [job.work for job in philly_jobs(text, "t", 5.0, 2)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x\n", "neither Philly's job log"),
        ("[{}]", "job 1: KeyError"),
        ("[", "t: "),
        ("runtime\nx\n", "line 2"),
        ("runtime\r1\n2", "new-line character"),
        ("a\r\rb", "new-line character"),
        ('[{"jobid": 1, "submitted_time": "2017-10-07T01:11:39+01:00", "attempts": []}]', "zone"),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(DataError, match=r"^t: ") as caught:
        philly_jobs(text, "t", 1.0)
    assert fault in str(caught.value)
