"""Models delivered out of real containers, while training goes on."""

import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
from helpers.containers import Job, api, eventually, plan_for
from helpers.tools import records

from dltools.actions.plans import Op
from dltools.engine.parts import Pauses, needed
from dltools.observations.targets import TargetMet

TRAINING = """busybox mkdir -p /ckpt; n=0
while :; do
    n=$((n + 1)); echo "epoch $n" > /ckpt/part; busybox mv /ckpt/part /ckpt/model
    echo "epoch $n val_loss: 0.$((100 - n))"; sleep 0.2
done"""
"""Each epoch writes its number into the checkpoint and then prints the loss, from 0.99 down."""

LABELS = {
    "dltools.metric": "val_loss",
    "dltools.target": "0.9",
    "dltools.checkpoint": "/ckpt/model",
}


def met(target: float = 0.9) -> TargetMet:
    return TargetMet("val_loss", "min", target, target, "2026-01-31T12:00:00.000000Z")


def ordered(job: Job, target: float = 0.9) -> bytes:
    return plan_for(job, {}, op=Op.DELIVER, met=met(target))


def end(pipe: subprocess.Popen[bytes]) -> None:
    os.killpg(pipe.pid, signal.SIGTERM)
    pipe.communicate(timeout=120)


def packed(path: Path) -> dict[str, str]:
    """Return the texts of the files in an archive."""
    with tarfile.open(path) as archive:
        read = {member.name: archive.extractfile(member) for member in archive if member.isreg()}
        return {name: file.read().decode() for name, file in read.items() if file}


def epoch(job: Job) -> int:
    return int((job.log().split() or [b"", b"0"])[-3])


def test_the_pipe_delivers_once_at_the_target_and_the_job_goes_on(tool, run, tmp_path) -> None:
    job = run(TRAINING, labels=LABELS)
    models = tmp_path / "models"
    pipe = (
        f"dl-probe -i 0.5 {' '.join(run.only)} | dl-plan -p tradl --set itval=1 |"
        f" dl-apply --deliver-dir {models}"
    )
    for _ in range(2):  # a pipe that is started again delivers nothing again
        running = tool.begin_shell(pipe, tmp_path / "bin")
        assert running.stdout is not None
        for line in running.stdout:
            result = json.loads(line)
            if "delivered" in result["after"]:
                break
        end(running)
    (path,) = models.iterdir()
    assert result["after"]["delivered"] == str(path)
    assert result["status"] == "unchanged"
    delivered = int(packed(path)["model"].split()[1])
    assert delivered >= 10  # the epoch that prints 0.90, or a later one
    eventually(lambda: epoch(job), lambda now: now > delivered)


def has_file(job: Job, path: str) -> bool:
    made = api().exec_create(job.id, ["cat", path])
    api().exec_start(made)
    return bool(api().exec_inspect(made)["ExitCode"] == 0)


@pytest.mark.parametrize("state", ["paused", "exited"])
def test_the_model_of_a_container_that_does_not_run_is_delivered(
    tool, run, tmp_path, state
) -> None:
    script = "echo model > /model; [ $1 = exited ] || sleep 999"
    job = run(script.replace("$1", state), labels={"dltools.checkpoint": "/model"})
    if state == "paused":
        eventually(lambda: has_file(job, "/model"))
        needed(job.engine, Pauses).pause(job.id)
    eventually(lambda: job.inspect().state, lambda found: found == state)
    done = tool("dl-apply", "--deliver-dir", tmp_path / "models", input=ordered(job))
    (result,) = records(done.stdout)
    assert result["status"] == "applied", result


def test_a_folder_is_delivered_and_a_path_that_is_not_there_is_told(tool, run, tmp_path) -> None:
    script = "busybox mkdir -p /ckpt/deep/er; echo 1 > /ckpt/a; echo 2 > /ckpt/deep/er/b; sleep 999"
    job = run(script, labels={"dltools.checkpoint": "/ckpt"})
    eventually(lambda: has_file(job, "/ckpt/deep/er/b"))
    done = tool("dl-apply", "--deliver-dir", tmp_path / "models", input=ordered(job))
    (result,) = records(done.stdout)
    found = packed(Path(result["after"]["delivered"]))
    assert found == {"ckpt/a": "1\n", "ckpt/deep/er/b": "2\n"}
    other = run("sleep 999", name="other", labels={"dltools.checkpoint": "/nowhere"})
    done = tool("dl-apply", "--deliver-dir", tmp_path / "models", input=ordered(other))
    (result,) = records(done.stdout)
    assert (done.returncode, result["status"]) == (1, "failed")
    assert "/nowhere" in result["error"] and result["error"].endswith("; it is tried again")


def test_a_path_cannot_climb_out_of_the_container(tool, run, tmp_path, request) -> None:
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))  # a container has a /dev/shm of its own
    request.addfinalizer(lambda: shutil.rmtree(place))
    secret = place / "secret"
    secret.write_text("of the host")
    script = (
        f"busybox mkdir -p {place}; echo own > {secret}; busybox ln -s {secret} /link; "
        "echo ready; sleep 999"
    )
    for number, path in enumerate((f"../../../..{secret}", "/link", f"/link/../{secret}")):
        job = run(script, name=f"job{number}", labels={"dltools.checkpoint": path})
        eventually(job.log, lambda said: b"ready" in said)
        done = tool("dl-apply", "--deliver-dir", tmp_path / "models", input=ordered(job))
        assert done.returncode in (0, 1), done.stderr
    copied = [text for path in (tmp_path / "models").iterdir() for text in packed(path).values()]
    assert "own\n" in copied
    assert all("of the host" not in text for text in copied)
