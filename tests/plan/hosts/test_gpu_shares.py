"""Shares of a GPU: what jobs have of it, by the levers that a host has, in virtual time."""

import json
import math

import pytest
from helpers.shared_gpu import Job, SharedGpu

from dltools.actions.plan_lines import dump_plan, load_plans
from dltools.actions.plans import Op
from dltools.plan.realisation.options import Mode


def training(name: str, priority: float = 1.0) -> Job:
    labels = {"dltools.user": "u", "dltools.priority": f"{priority:g}"}
    return Job(name, labels=json.dumps(labels))


@pytest.mark.parametrize("asked", [(0.5, 0.5), (0.7, 0.3), (0.4, 0.3, 0.2, 0.1)], ids=str)
def test_trainings_have_the_shares_that_are_asked_for(asked) -> None:
    jobs = [training(f"j{number}", 10 * part) for number, part in enumerate(asked)]
    host = SharedGpu("fair", Mode.QUOTA, *jobs)
    host.run(180)
    shares = host.shares(60)
    assert list(shares.values()) == pytest.approx(list(asked), abs=0.05)
    assert math.fsum(shares.values()) >= 0.95


def server(name: str, target: float, kernel: float, cpu: float = 0.001) -> Job:
    return Job(name, kernel, cpu, target, json.dumps({"dltools.qoe": f"{target:g}"}))


def mean(times: list[float]) -> float:
    return math.fsum(times) / len(times)


def test_a_server_meets_its_target_and_trainings_have_what_that_leaves() -> None:
    """60 ms alone, 180 ms beside two trainings under Docker alone."""

    def run(policy: str | None) -> SharedGpu:
        jobs = server("s", 0.1, 0.06), Job("a"), Job("b")
        host = SharedGpu(policy, None, *jobs)
        host.run(120)
        return host

    assert mean(run(None).responses("s", 60)) == pytest.approx(0.18, rel=0.05)
    host = run("dqoes")
    shares = host.shares(60)
    assert mean(host.responses("s", 60)) == pytest.approx(0.1, rel=0.1)
    assert shares["a"] + shares["b"] >= 0.8 * (1 - shares["s"])
    assert host.planner is not None
    plan = host.planner.plan({})
    (again,) = load_plans(dump_plan(plan).encode().splitlines(), "plan")
    turns = [one.set for one in again.actions if one.op is Op.ROTATE]
    assert [one["asked"] for one in turns] == pytest.approx([0.2, 0.2], abs=0.02)
    assert [one["had"] for one in turns] == pytest.approx([0.2, 0.2], abs=0.1)  # by NVML
    reasons = {one.name: one.reason for one in host.planner.explain().decisions}
    assert "asked, had" in reasons["a"]
    assert "duty, " in reasons["a"]
    assert host.jobs["s"].quota is None


def test_a_training_that_leaves_the_gpu_idle_for_a_while_gets_its_share_again() -> None:
    host = SharedGpu("fair", Mode.QUOTA, training("a", 7), training("b", 3))
    host.run(60)
    for ahead in (0, 2):  # b asks for no kernels, then does again
        host.jobs["b"].ahead = ahead
        host.run(90)
    assert list(host.shares(30).values()) == pytest.approx([0.7, 0.3], abs=0.1)


def test_servers_that_are_alone_on_their_gpu_are_not_slowed() -> None:
    host = SharedGpu("dqoes", None, server("s", 0.5, 0.06))
    host.run(60)
    assert mean(host.responses("s", 20)) < 0.1
    assert host.jobs["s"].quota is None


SERVERS = (  # kernel (s), CPU (s), target (s): alone they would need half of the GPU
    (0.02, 0.004, 0.30),
    (0.02, 0.004, 0.45),
    (0.03, 0.005, 0.50),
    (0.03, 0.005, 0.60),
    (0.04, 0.006, 0.80),
    (0.04, 0.006, 0.35),
    (0.05, 0.008, 0.70),
    (0.05, 0.008, 1.00),
)


def satisfied(host: SharedGpu, seconds: float) -> int:
    targets = {name: job.target for name, job in host.jobs.items() if job.target}
    found = {name: mean(host.responses(name, seconds)) for name in targets}
    return sum(abs(found[name] - target) <= 0.1 * target for name, target in targets.items())


@pytest.mark.slow
def test_servers_are_satisfied_beside_trainings() -> None:
    """All eight could be; under Docker alone none is."""
    counts = {}
    for policy in (None, "dqoes"):
        servers = [server(f"s{n}", t, k, c) for n, (k, c, t) in enumerate(SERVERS)]
        host = SharedGpu(policy, None, *servers, *(Job(f"t{n}") for n in range(4)))
        host.run(200)
        found = []
        for _ in range(5):
            host.run(40)
            found.append(satisfied(host, 30))
        counts[policy] = sum(found) / len(found)
    assert counts[None] == 0
    assert counts["dqoes"] >= 7.2
