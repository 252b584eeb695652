"""The published traces, where they are at hand, run through every policy."""

import json
import math
import os
from pathlib import Path

import pytest

from dltools.plan.policy import registry
from dltools.plan.realisation.mode import RealisationOptions
from dltools.sim.simulation import Simulation
from dltools.sim.traces import alibaba_hosts, alibaba_jobs, gavel_jobs, philly_jobs, pollux_jobs
from dltools.sim.workload import HostSpec, workload_of


def data() -> Path:
    folder = Path(os.environ.get("DLTOOLS_DATA", "")) / "logs"
    if not os.environ.get("DLTOOLS_DATA") or not (folder / "cluster").is_dir():
        pytest.skip("DLTOOLS_DATA names no directory with cluster traces")
    return folder


@pytest.mark.parametrize("policy", sorted(registry.policies([])))
@pytest.mark.parametrize("trace", ["gavel_small_test", "gavel_max_min_fairness"])
def test_the_gavel_traces_run_through_every_policy(policy, trace) -> None:
    folder = data()
    rates = json.loads((folder / "curves/gavel_simulation_throughputs.json").read_text())
    jobs = gavel_jobs((folder / f"cluster/{trace}.trace").read_text(), rates, trace)
    made = workload_of(jobs, [HostSpec(f"n{k}", 4.0) for k in range(4)], trace)
    chosen = registry.get(policy, [])
    span = sum(job.work for job in jobs)
    itval = {"itval": min(86400.0, span / 2000)} if hasattr(chosen.parameters(), "itval") else {}
    results = Simulation(made, chosen, chosen.parameters(**itval), RealisationOptions()).run()
    assert all(r.finish is not None for r in results)
    assert math.fsum(r.cpu for r in results) == pytest.approx(span, rel=1e-6)


def test_a_thousand_pods_run() -> None:
    text = (data() / "cluster/alibaba2023_openb_pod_list_default.csv").read_text()
    jobs = sorted(alibaba_jobs(text, "pods"), key=lambda job: job.arrival)[:1000]
    assert len(jobs) == 1000
    made = workload_of(jobs, [HostSpec(f"n{k}", 64.0, 1 << 40) for k in range(50)], "pods")
    noop = registry.get("noop", [])
    results = Simulation(made, noop, noop.parameters(), RealisationOptions()).run()
    assert all(r.finish is not None for r in results)


POLLUX = [f"workloads-realistic__workload-{k}" for k in (1, 2, 3, 4)] + [
    f"workloads__workload-{k}" for k in (1, 2)
]


@pytest.mark.parametrize("policy", sorted(registry.policies([])))
@pytest.mark.parametrize("trace", POLLUX)
def test_the_pollux_workloads_run_through_every_policy(policy, trace) -> None:
    jobs = pollux_jobs((data() / f"cluster/pollux_{trace}.csv").read_text(), trace)
    assert len(jobs) == 160
    made = workload_of(jobs, [HostSpec(f"n{k}", 32.0) for k in range(2)], trace)
    chosen = registry.get(policy, [])
    itval = {"itval": 600.0} if hasattr(chosen.parameters(), "itval") else {}
    results = Simulation(made, chosen, chosen.parameters(**itval), RealisationOptions()).run()
    assert all(r.finish is not None for r in results)
    work = math.fsum(job.work for job in jobs)
    assert math.fsum(r.cpu for r in results) == pytest.approx(work, rel=1e-6)


def test_microsofts_run_times_and_alibabas_hosts_are_read() -> None:
    folder = data() / "cluster"
    jobs = philly_jobs((folder / "philly_runtime_seconds.csv").read_text(), "philly", 60.0)
    assert len(jobs) > 80_000
    assert (
        len(alibaba_hosts((folder / "alibaba2023_openb_node_list_gpu_node.csv").read_text(), "n"))
        == 1213
    )
    assert len(alibaba_hosts((folder / "alibaba2026_spot_nodes.csv").read_text(), "n")) == 4278
