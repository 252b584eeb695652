"""Others' traces: a line by hand, faults, and the real files where they are at hand."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from dltools.errors import DataError
from dltools.policy import registry
from dltools.realize import Choice
from dltools.sim.engine import Simulation
from dltools.sim.traces import alibaba, gavel
from dltools.sim.workload import Job, NodeSpec, checked

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
    made = checked(jobs, [NodeSpec(f"n{k}", 4.0) for k in range(4)], trace)
    chosen = registry.get(policy, [])
    span = sum(job.work for job in jobs)
    itval = {"itval": min(86400.0, span / 2000)} if hasattr(chosen.parameters(), "itval") else {}
    results = Simulation(made, chosen, chosen.parameters(**itval), Choice()).run()
    assert all(r.finish is not None for r in results)
    assert math.fsum(r.cpu for r in results) == pytest.approx(span, rel=1e-6)


def test_a_thousand_pods_run() -> None:
    text = (data() / "cluster/alibaba2023_openb_pod_list_default.csv").read_text()
    jobs = sorted(alibaba(text, "pods"), key=lambda job: job.arrival)[:1000]
    assert len(jobs) == 1000
    made = checked(jobs, [NodeSpec(f"n{k}", 64.0, 1 << 40) for k in range(50)], "pods")
    noop = registry.get("noop", [])
    results = Simulation(made, noop, noop.parameters(), Choice()).run()
    assert all(r.finish is not None for r in results)
