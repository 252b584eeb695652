"""The stand-in for a GPU: it shares itself as a GPU does, and tells its use as NVML does."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from helpers.containers import Job, api, eventually
from helpers.gpu_stand_in import (
    ENVIRONMENT,
    UUID,
    Program,
    StandIn,
    binds,
    client,
    probe_command,
    stand_in,
    used,
)


def with_kernels(**kernels: list[float]) -> StandIn:
    gpu = StandIn()
    for number, (name, own) in enumerate(kernels.items()):
        gpu.programs[name] = Program(number)
        gpu.programs[name].kernels.extend(own)
    return gpu


def test_programs_share_it_and_who_is_alone_has_all() -> None:
    gpu = with_kernels(a=[0.1], b=[0.3], idle=[])
    assert gpu.next_end() == pytest.approx(0.2)
    assert gpu.advance(0.2) == ["a"]
    assert gpu.next_end() == pytest.approx(0.2)
    assert gpu.advance(5.0) == ["b"]
    assert gpu.next_end() is None
    shares = {name: one.used for name, one in gpu.programs.items()}
    assert shares == pytest.approx({"a": 0.1, "b": 0.3, "idle": 0.0})


def test_kernels_of_one_program_follow_each_other() -> None:
    gpu = with_kernels(a=[0.1, 0.1, 0.1], b=[0.15])
    assert gpu.advance(0.35) == ["a", "b", "a"]
    assert gpu.programs["a"].used + gpu.programs["b"].used == pytest.approx(0.35)


def parts(directory: Path, jobs: list[Job], seconds: float) -> list[float]:
    """What each container uses of the GPU over a time."""
    pids = [job.inspect().pid for job in jobs]
    before, begun = used(directory), time.monotonic()
    time.sleep(seconds)
    after, span = used(directory), time.monotonic() - begun
    return [(after[pid] - before[pid]) / span for pid in pids]


@pytest.mark.slow
def test_containers_share_it_and_a_pause_leaves_it_to_the_others(run, tmp_path) -> None:
    with stand_in(tmp_path / "gpu") as gpu:
        jobs = [run(client("train", kernel=20), name=name, binds=binds(gpu)) for name in "ab"]
        eventually(lambda: len(used(gpu)) == 2)
        shares = parts(gpu, jobs, 3.0)
        assert sum(shares) > 0.6
        assert abs(shares[0] - shares[1]) < 0.1
        api().pause(jobs[0].id)
        shares = parts(gpu, jobs, 2.0)
        assert shares[0] < 0.1 < 0.5 < shares[1]
        api().unpause(jobs[0].id)

        command = [*probe_command(gpu), *run.only, "--format", "jsonl"]

        def used_as_probed() -> list[float]:
            done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            found = {row.get("container_id"): row for row in rows if row.get("gpu_uuid") == UUID}
            return [found[job.id]["gpu_utilization_ratio"] or 0.0 for job in jobs]

        eventually(lambda: all(0.1 < ratio <= 1 for ratio in used_as_probed()))
