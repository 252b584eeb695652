"""Gavel's traces: a line by hand, and faults."""

from __future__ import annotations

import pytest

from dltools.errors import DataError
from dltools.sim.traces.gavel import gavel_jobs
from dltools.sim.workload import Job

LINE = "ResNet-18 (batch size 32)\tpython3 main.py\timage/cifar10\t--num_steps\t1\t600\t2\t1\t-1\t9"
RATES = {"v100": {"('ResNet-18 (batch size 32)', 2)": {"null": 3.0}}}


def test_a_gavel_job_takes_its_steps_over_its_throughput() -> None:
    # 600 steps at 3 a second: 200 s on 2 GPUs, 400 GPU seconds.
    assert gavel_jobs(LINE, RATES, "t") == [Job("image-1", 9.0, 400.0, 2, spin=0.0)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a\tb", "has 10 fields, not 2"),
        (LINE.replace("\t2\t", "\t4\t"), "no throughput of ResNet-18"),
        (LINE.replace("\t600\t", "\tx\t"), "could not convert"),
        (LINE.replace("\t600\t", "\t-1\t"), "must be more than 0"),
    ],
)
def test_a_gavel_line_at_fault_is_named(text: str, fault: str) -> None:
    with pytest.raises(DataError, match="t: line 1") as caught:
        gavel_jobs(text, RATES, "t")
    assert fault in str(caught.value)
