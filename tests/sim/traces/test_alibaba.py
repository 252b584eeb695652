"""Alibaba's pods and node lists: rows by hand, and faults."""

from __future__ import annotations

import pytest

from dltools.errors import DataError
from dltools.sim.traces.alibaba import alibaba_hosts, alibaba_jobs
from dltools.sim.workload import HostSpec, Job

HEAD = "name,cpu_milli,memory_mib,num_gpu,creation_time,deletion_time,scheduled_time\n"


def test_a_pod_works_while_it_was_scheduled() -> None:
    text = HEAD + "p,1500,2,0,10,100,20\nnever,1000,2,0,10,100,\nstill,1000,2,0,10,,20\n"
    assert alibaba_jobs(text, "t") == [Job("p", 10.0, 120.0, 2, memory=2 << 20, spin=0.0)]


def test_another_table_is_no_pod_list() -> None:
    with pytest.raises(DataError, match="no column cpu_milli"):
        alibaba_jobs("name,time\na,1\n", "t")


@pytest.mark.parametrize(
    "pod", [f"{'15' * 200},2,0,10,100,20", "nan,2,0,10,100,20", "1,2,0,10,inf,20"]
)
def test_a_pod_s_numbers_are_finite(pod: str) -> None:
    """Found by fuzzing: the first stopped dl-sim, the others made jobs without an end."""
    with pytest.raises(DataError, match=r"^t: line 2: a number is missing, or too large$"):
        alibaba_jobs(f"{HEAD}p,{pod}\n", "t")


def test_hosts_of_both_node_lists() -> None:
    assert alibaba_hosts("sn,cpu_milli,memory_mib,gpu,model\na,64000,2,2,P100\n", "t") == [
        HostSpec("a", 64.0, 2 << 20)
    ]
    assert alibaba_hosts("gpu_model,gpu_capacity_num,cpu_num,node_name\ng,4,192,7\n", "t") == [
        HostSpec("7", 192.0)
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a,b\n", "not an Alibaba node list"),
        ("sn,cpu_milli\na,0\n", "line 2: cpu_milli must be more than 0"),
    ],
)
def test_a_fault_is_named_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(DataError, match=r"^t: ") as caught:
        alibaba_hosts(text, "t")
    assert fault in str(caught.value)
