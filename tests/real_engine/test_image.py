"""The tools in a container of their own, by the lines of samples/image/README.md."""

import re
import shlex
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.containers import Containers, Job, api, eventually, plan_for

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SPEAK = "i=0; while :; do i=$((i+1)); echo step $i loss: 0.$((1000-i)); usleep 100000; done"
LOOK, ACT, UNDO = [
    line.replace("\\\n", " ")
    for line in re.findall(
        r"^    (docker run (?:.*\\\n)*.*)$", (ROOT / "samples/image/README.md").read_text(), re.M
    )
]


@pytest.fixture
def name() -> Iterator[str]:
    """Of the container of the tools and of their volume."""
    if not api().images("dltools", quiet=True):
        pytest.skip("there is no image dltools: samples/image/build makes it")
    made = f"dltools-test-image-{uuid.uuid4().hex[:8]}"
    yield made
    for words in (("rm", "-f", made), ("volume", "rm", "-f", made)):
        subprocess.run(["docker", *words], capture_output=True)


def docker(line: str, name: str = "", input: bytes = b"") -> str:
    words = shlex.split(line)
    words = [word.replace("dltools:/", f"{name}:/") for word in words]
    if "--name" in words:
        words[words.index("--name") + 1] = name
    # Others may use the engine, too.
    words[2:2] = ["-e", "DLTOOLS_BESIDE=any", *(["-i"] if input else [])]
    done = subprocess.run(words, input=input, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def selecting(line: str, run: Containers) -> str:
    """The line, for the test's own containers alone."""
    return line.replace("dl-probe", f"dl-probe {shlex.join(run.only)}")


def test_dl_probe_sees_the_other_containers(run, name) -> None:
    assert name
    job = run(SPEAK)
    line = selecting(LOOK, run)
    eventually(lambda: docker(line), lambda table: "training" in table and "loss" in table)
    rows = docker(line.replace("table", "jsonl"))
    assert f'"container_id": "{job.id}"' in rows
    assert '"thread_count"' in rows
    assert '"cgroup_parent"' in rows  # from the host's files
    assert '"gap"' not in rows


@pytest.fixture
def limited(run: Containers, name: str) -> list[tuple[Job, dict[str, str]]]:
    """Two jobs, with what the kernel said of them before the pipe ran, which has set limits."""
    jobs = [run(SPEAK, name=one) for one in ("a", "b")]
    before = [job.kernel() for job in jobs]
    docker(selecting(ACT, run).replace("dl-plan", "dl-plan -p fair --realize quota"), name)
    pairs = list(zip(jobs, before, strict=True))
    eventually(lambda: all(job.kernel() != found for job, found in pairs))
    assert api().inspect_container(name)["RestartCount"] == 0
    return pairs


def test_docker_stop_restores(limited, name) -> None:
    subprocess.run(["docker", "stop", name], check=True, capture_output=True)
    for job, before in limited:
        assert job.kernel() == before
    assert api().inspect_container(name)["State"]["ExitCode"] in (0, 143)


def test_after_docker_kill_another_container_restores(limited, name) -> None:
    subprocess.run(["docker", "kill", name], check=True, capture_output=True)
    for job, before in limited:
        assert job.kernel() != before
    docker(UNDO, name)
    for job, before in limited:
        assert job.kernel() == before


def test_dl_apply_leaves_its_own_container_alone(run, name) -> None:
    job = run()
    own = ACT.partition("dltools bash")[0] + "dltools sleep 1000"
    docker(own, name)
    inside = api().inspect_container(name)["Id"]
    plan = plan_for(job, {"cpus": 0.5}, container_id=inside, container_name=name)
    done = subprocess.run(
        ["docker", "exec", "-i", "-e", "DLTOOLS_BESIDE=any", name, "dl-apply"],
        input=plan,
        capture_output=True,
    )
    assert b"skipped" in done.stdout
    assert api().inspect_container(name)["HostConfig"]["NanoCpus"] == 0
