"""Pollux's workloads: a row by hand, and faults."""

from __future__ import annotations

import pytest

from dltools.errors import DataError
from dltools.sim.traces.pollux import pollux_jobs
from dltools.sim.workload import Job


def test_a_pollux_job_takes_what_its_application_takes() -> None:
    text = "name,time,application,num_replicas,batch_size\nb-0,107,bert,6,384\n"
    assert pollux_jobs(text, "t") == [Job("b-0", 107.0, 13_600.0, 6, spin=0.0)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("name,time\n", "no column application"),
        ("name,time,application,num_replicas\na,1,gpt,2\n", "line 2: unknown application 'gpt'"),
        ("name,time,application,num_replicas\na,x,ncf,2\n", "line 2: could not convert"),
        ("name,time,application,num_replicas\na,1,ncf,0\n", "num_replicas must be more than 0"),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(DataError, match=r"^t: ") as caught:
        pollux_jobs(text, "t")
    assert fault in str(caught.value)
