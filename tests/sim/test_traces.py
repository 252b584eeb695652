"""Others' traces: a line by hand, faults, and the real files where they are at hand."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dltools.errors import DataError
from dltools.plan.policy import registry
from dltools.plan.realisation.mode import RealisationOptions
from dltools.sim.simulation import Simulation
from dltools.sim.traces import alibaba, gavel, machines, philly, pollux
from dltools.sim.workload import HostSpec, Job, checked

LINE = "ResNet-18 (batch size 32)\tpython3 main.py\timage/cifar10\t--num_steps\t1\t600\t2\t1\t-1\t9"
RATES = {"v100": {"('ResNet-18 (batch size 32)', 2)": {"null": 3.0}}}
HEAD = "name,cpu_milli,memory_mib,num_gpu,creation_time,deletion_time,scheduled_time\n"


def test_a_gavel_job_takes_its_steps_over_its_throughput() -> None:
    # 600 steps at 3 a second: 200 s on 2 GPUs, 400 GPU seconds.
    assert gavel(LINE, RATES, "t") == [Job("image-1", 9.0, 400.0, 2, spin=0.0)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a\tb", "2 fields"),
        (LINE.replace("\t2\t", "\t4\t"), "no throughput of ResNet-18"),
        (LINE.replace("\t600\t", "\tx\t"), "could not convert"),
        (LINE.replace("\t600\t", "\t-1\t"), "more than 0"),
    ],
)
def test_a_gavel_line_at_fault_is_named(text: str, fault: str) -> None:
    with pytest.raises(DataError, match="t: line 1") as caught:
        gavel(text, RATES, "t")
    assert fault in str(caught.value)


def test_a_pod_works_while_it_was_scheduled() -> None:
    text = HEAD + "p,1500,2,0,10,100,20\nnever,1000,2,0,10,100,\nstill,1000,2,0,10,,20\n"
    assert alibaba(text, "t") == [Job("p", 10.0, 120.0, 2, memory=2 << 20, spin=0.0)]


def test_another_table_is_no_pod_list() -> None:
    with pytest.raises(DataError, match="no column cpu_milli"):
        alibaba("name,time\na,1\n", "t")


def test_a_pollux_job_takes_what_its_application_takes() -> None:
    text = "name,time,application,num_replicas,batch_size\nb-0,107,bert,6,384\n"
    assert pollux(text, "t") == [Job("b-0", 107.0, 13_600.0, 6, spin=0.0)]


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
    assert philly(json.dumps(LOG), "t", 1.0) == [
        Job("a", 10.0, 150.0, 3, spin=0.0), Job("b", 0.0, 5.0, 1, spin=0.0),
    ]  # fmt: skip


def test_run_times_alone_come_a_gap_apart_in_an_order_by_seed() -> None:
    text = "runtime\n" + "".join(f"{k}.0\n" for k in range(20))
    found = philly(text, "t", 5.0, 1)
    assert [job.arrival for job in found] == [5.0 * k for k in range(19)]  # 0 s never ran
    assert sorted(job.work for job in found) == [float(k) for k in range(1, 20)]
    assert [job.work for job in found] != [job.work for job in philly(text, "t", 5.0, 2)]


def test_machines_of_both_node_lists() -> None:
    assert machines("sn,cpu_milli,memory_mib,gpu,model\na,64000,2,2,P100\n", "t") == [
        HostSpec("a", 64.0, 2 << 20)
    ]
    assert machines("gpu_model,gpu_capacity_num,cpu_num,node_name\ng,4,192,7\n", "t") == [
        HostSpec("7", 192.0)
    ]


@pytest.mark.parametrize(
    ("read", "text", "fault"),
    [
        (pollux, "name,time\n", "no column application"),
        (pollux, "name,time,application,num_replicas\na,1,gpt,2\n", "line 2: application 'gpt'"),
        (pollux, "name,time,application,num_replicas\na,x,ncf,2\n", "line 2: could not convert"),
        (pollux, "name,time,application,num_replicas\na,1,ncf,0\n", "num_replicas more than 0"),
        (lambda text, name: philly(text, name, 1.0), "x\n", "neither Philly's job log"),
        (lambda text, name: philly(text, name, 1.0), "[{}]", "job 1: KeyError"),
        (lambda text, name: philly(text, name, 1.0), "[", "t: "),
        (lambda text, name: philly(text, name, 1.0), "runtime\nx\n", "line 2"),
        (machines, "a,b\n", "not a node list"),
        (machines, "sn,cpu_milli\na,0\n", "line 2: CPUs are more than 0"),
    ],
)  # fmt: skip
def test_other_traces_at_fault_are_named(
    read: Callable[[str, str], object], text: str, fault: str
) -> None:
    with pytest.raises(DataError, match=r"^t: ") as caught:
        read(text, "t")
    assert fault in str(caught.value)


def data() -> Path:
    folder = Path(os.environ.get("DLTOOLS_DATA", "")) / "logs"
    if not os.environ.get("DLTOOLS_DATA") or not (folder / "cluster").is_dir():
        pytest.skip("DLTOOLS_DATA names no directory with cluster traces")
    return folder


@pytest.mark.parametrize("policy", sorted(registry.policies([])))
@pytest.mark.parametrize("trace", ["gavel_small_test", "gavel_max_min_fairness"])
def test_the_gavel_traces_run_through_every_policy(policy: str, trace: str) -> None:
    folder = data()
    rates = json.loads((folder / "curves/gavel_simulation_throughputs.json").read_text())
    jobs = gavel((folder / f"cluster/{trace}.trace").read_text(), rates, trace)
    made = checked(jobs, [HostSpec(f"n{k}", 4.0) for k in range(4)], trace)
    chosen = registry.get(policy, [])
    span = sum(job.work for job in jobs)
    itval = {"itval": min(86400.0, span / 2000)} if hasattr(chosen.parameters(), "itval") else {}
    results = Simulation(made, chosen, chosen.parameters(**itval), RealisationOptions()).run()
    assert all(r.finish is not None for r in results)
    assert math.fsum(r.cpu for r in results) == pytest.approx(span, rel=1e-6)


def test_a_thousand_pods_run() -> None:
    text = (data() / "cluster/alibaba2023_openb_pod_list_default.csv").read_text()
    jobs = sorted(alibaba(text, "pods"), key=lambda job: job.arrival)[:1000]
    assert len(jobs) == 1000
    made = checked(jobs, [HostSpec(f"n{k}", 64.0, 1 << 40) for k in range(50)], "pods")
    noop = registry.get("noop", [])
    results = Simulation(made, noop, noop.parameters(), RealisationOptions()).run()
    assert all(r.finish is not None for r in results)


POLLUX = [f"workloads-realistic__workload-{k}" for k in (1, 2, 3, 4)] + [
    f"workloads__workload-{k}" for k in (1, 2)
]


@pytest.mark.parametrize("policy", sorted(registry.policies([])))
@pytest.mark.parametrize("trace", POLLUX)
def test_the_pollux_workloads_run_through_every_policy(policy: str, trace: str) -> None:
    jobs = pollux((data() / f"cluster/pollux_{trace}.csv").read_text(), trace)
    assert len(jobs) == 160
    made = checked(jobs, [HostSpec(f"n{k}", 32.0) for k in range(2)], trace)
    chosen = registry.get(policy, [])
    itval = {"itval": 600.0} if hasattr(chosen.parameters(), "itval") else {}
    results = Simulation(made, chosen, chosen.parameters(**itval), RealisationOptions()).run()
    assert all(r.finish is not None for r in results)
    work = math.fsum(job.work for job in jobs)
    assert math.fsum(r.cpu for r in results) == pytest.approx(work, rel=1e-6)


def test_microsofts_run_times_and_alibabas_machines_are_read() -> None:
    folder = data() / "cluster"
    jobs = philly((folder / "philly_runtime_seconds.csv").read_text(), "philly", 60.0)
    assert len(jobs) > 80_000
    assert (
        len(machines((folder / "alibaba2023_openb_node_list_gpu_node.csv").read_text(), "n"))
        == 1213
    )
    assert len(machines((folder / "alibaba2026_spot_nodes.csv").read_text(), "n")) == 4278
