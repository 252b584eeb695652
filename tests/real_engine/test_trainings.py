"""The main job on real trainings, which all tests share: the pipe of the README, and back.

The trainings learn as much in a CPU second on any machine (--epoch-cpu): in each of the first 60
the loss of `fast` falls by 1.9 to 0.6 % of its start, that of `slow` by 1.3 to 0.8 %, that of
`flat` not at all. So growth efficiency does not depend on how fast the machine is, or how busy.
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import api, eventually
from helpers.examples import repeated
from helpers.tools import environment

from dltools.engine import cgroup
from dltools.engine.interface import Engine

pytestmark = [pytest.mark.engine, pytest.mark.slow]

BUILD = Path(__file__).parents[2] / "samples" / "digits" / "build"
IMAGE = "dltools-digits"
PACE = "--epoch-cpu 0.02 --normalise --rate"
JOBS: dict[str, tuple[str, dict[str, float]]] = {
    "fast": (f"{PACE} 0.0015", {}),
    "slow": (f"{PACE} 0.001", {"NanoCpus": 0.9e9}),
    "flat": (f"{PACE} 0", {"CpuQuota": 0.95e5}),
}
"""Arguments, and limits for each of the node's CPUs."""

ALPHA = 0.003
"""Half of the least growth efficiency of `fast`, on one CPU; on n it is n times as much."""


def kernel_files(engine: Engine, name: str) -> dict[str, str]:
    """What the kernel has for a container: the limits that a change could touch."""
    container = engine.inspect(name)
    group = cgroup.of_process(container.pid, cgroup.mounts())
    assert group is not None
    wanted = ("cpu.max", "cpu.weight", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares")
    files = {}
    for controller, names in (("cpu", wanted), ("cpuset", ("cpuset.cpus",))):
        found = group.directory(controller)
        assert found is not None
        for file in names:
            if (found[0] / file).exists():
                files[file] = (found[0] / file).read_text().strip()
    return files


@pytest.fixture(scope="module")
def jobs(engine: Engine) -> Iterator[dict[str, str]]:
    """Three trainings, started with no limit, with --cpus and with --cpu-quota."""
    on_disk = os.environ | {"TMPDIR": "/var/tmp"}  # debootstrap wants a place with devices
    built = subprocess.run([str(BUILD)], capture_output=True, text=True, env=on_disk)
    if built.returncode:
        message = f"no image of the digits jobs: {built.stderr.strip()}"
        if os.environ.get("DLTOOLS_ENGINE") == "require":
            pytest.fail(message)
        pytest.skip(message)
    label = f"dltools-trainings={uuid.uuid4().hex[:8]}"
    names = {job: f"{job}-{label[-8:]}" for job in JOBS}
    try:
        for job, (arguments, limits) in JOBS.items():
            whole: dict[str, Any] = {key: int(limits[key] * engine.cpus) for key in limits}
            whole["NetworkMode"] = "none"
            created = api().create_container_from_config(
                {
                    "Image": IMAGE,
                    "Cmd": arguments.split(),
                    "HostConfig": whole,
                    "Labels": dict([label.split("=")]),
                },
                names[job],
            )
            api().start(created["Id"])
        for name in names.values():
            eventually(lambda: api().logs(name))  # noqa: B023
        yield {"label": label, **names}
    finally:
        for name in names.values():
            subprocess.run(["docker", "rm", "-f", name], capture_output=True, check=False)


def launcher(tool: str) -> str:
    code = f"import sys; sys.argv[0]='dl-{tool}'; from dltools.cli.{tool} import main; main()"
    return f'{sys.executable} -c "{code}"'


def shell(
    line: str, state: Path, codes: tuple[int, ...] = (0,), told: str = ""
) -> list[dict[str, Any]]:
    """Run a shell line in which dl-NAME stands for the tools; every stage must succeed, and what is
    `told` begin what they complain of."""
    for tool in ("probe", "plan", "apply"):
        line = line.replace(f"dl-{tool}", launcher(tool))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(XDG_STATE_HOME=str(state)),
    )
    assert done.returncode in codes, done.stderr
    assert done.stderr.startswith(told) if told else not done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_flowcon_and_back(engine: Engine, jobs: dict[str, str], tmp_path: Path) -> None:
    before = {job: kernel_files(engine, jobs[job]) for job in JOBS}
    plan = tmp_path / "plan.jsonl"

    results = shell(
        f"dl-probe --label {jobs['label']} -i 2 --duration 24"
        f" | dl-plan --policy flowcon --realize quota --set itval=4 --set alpha={ALPHA}"
        f" | tee {plan} | dl-apply",
        tmp_path,
        (0, 75),
    )
    # A slow machine samples before the last plan is applied: the next one comes too late.
    assert {result["status"] for result in results} <= {"applied", "unchanged", "stale"}

    records = [json.loads(line) for line in plan.read_text().splitlines()]
    (classes,) = [record for record in records if record["kind"] == "plan"][-1]["classes"].values()
    assert {job: classes[jobs[job]] for job in JOBS} == {"fast": "NL", "slow": "NL", "flat": "CL"}

    last = {r["container"]["name"]: r["after"]["cpus"] for r in results}
    limits = {job: last[jobs[job]] or 1e9 for job in JOBS}
    assert limits["flat"] < limits["slow"]
    assert limits["flat"] < limits["fast"]

    for job in JOBS:  # docker inspect shows the limits that the results name
        config = engine.inspect(jobs[job]).native["HostConfig"]
        shown = config["NanoCpus"] / 1e9 or config["CpuQuota"] / (config["CpuPeriod"] or 100_000)
        assert shown == pytest.approx(last[jobs[job]], abs=0.001)

    undone = shell("dl-apply --undo", tmp_path)
    assert {result["status"] for result in undone} == {"applied"}
    assert {job: kernel_files(engine, jobs[job]) for job in JOBS} == before
    assert shell("dl-apply --undo", tmp_path, told="dl-apply: nothing to undo on ") == []


def test_the_one_shot_pipe_acts_at_the_first_try(
    engine: Engine, jobs: dict[str, str], tmp_path: Path
) -> None:
    begun = engine.inspect(jobs["flat"]).started
    assert begun is not None
    itval, options = repeated((10, "--set itval=10"), (30, ""))  # 30 s is the default
    two_intervals = timedelta(seconds=2 * itval + 2)
    eventually(lambda: datetime.now(UTC) - begun > two_intervals)
    results = shell(
        f"dl-probe --label {jobs['label']}"
        f" | dl-plan --policy flowcon --realize quota --set alpha={ALPHA} {options} | dl-apply",
        tmp_path,
    )
    assert results
    assert {result["status"] for result in results} == {"applied"}
    names = {result["container"]["name"] for result in results}
    assert jobs["fast"] in names
    shell("dl-apply --undo", tmp_path)


def test_a_window_brings_progress_too(jobs: dict[str, str], tmp_path: Path) -> None:
    rows = shell(f"dl-probe --label {jobs['label']} --window 1 --format jsonl", tmp_path)
    assert {row["container_name"] for row in rows if row["kind"] == "progress"} == {
        jobs[job] for job in JOBS
    }
