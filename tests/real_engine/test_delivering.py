"""Models delivered out of real containers, while training goes on."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import Containers, Job, eventually, plan_for
from helpers.pipes import feed, give
from helpers.tools import Tools, records

from dltools.plan.records import Op
from dltools.plan.signals.targets import TargetMet

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
    """End all tools of a pipe."""
    os.killpg(pipe.pid, signal.SIGTERM)
    pipe.communicate(timeout=120)


def epoch(job: Job) -> int:
    return int((job.log().split() or [b"", b"0"])[-3])


def test_the_pipe_delivers_once_at_the_target_and_the_job_goes_on(
    tool: Tools, run: Containers, tmp_path: Path
) -> None:
    job = run(TRAINING, labels=LABELS)
    models = tmp_path / "models"
    pipe = (
        f"dl-probe -i 0.5 {' '.join(run.only)} | dl-plan -p tradl --set itval=1 |"
        f" dl-apply --deliver-dir {models} --deliver-hook 'ls -d'"
    )
    for _ in range(2):  # a pipe that is started again delivers nothing again
        running = tool.begin_shell(pipe, tmp_path / "bin")
        assert running.stdout is not None
        for line in running.stdout:
            result = json.loads(line)
            if "delivered" in result["after"]:
                break
        end(running)
    (folder,) = models.iterdir()
    assert result["after"]["delivered"] == str(folder)
    assert result["status"] == "unchanged"
    manifest = json.loads((folder / "manifest.json").read_text())
    model = (folder / "checkpoint" / "model").read_text()
    assert (manifest["value"], manifest["size"]) == (0.9, len(model))
    delivered = int(model.split()[1])
    assert delivered >= 10  # the epoch that prints 0.90, or a later one
    eventually(lambda: epoch(job), lambda now: now > delivered)


@pytest.mark.parametrize("state", ["paused", "exited"])
def test_the_model_of_a_container_that_does_not_run_is_delivered(
    tool: Tools, run: Containers, tmp_path: Path, state: str
) -> None:
    script = "echo model > /model; [ $1 = exited ] || sleep 999"
    job = run(script.replace("$1", state), labels={"dltools.checkpoint": "/model"})
    if state == "paused":
        eventually(lambda: job.engine.run(job.id, ["cat", "/model"]), lambda code: code == 0)
        job.engine.pause(job.id)
    eventually(lambda: job.inspect().state, lambda found: found == state)
    done = tool("dl-apply", "--deliver-dir", tmp_path / "models", input=ordered(job))
    (result,) = records(done.stdout)
    assert result["status"] == "applied", result


def test_a_folder_is_delivered_and_a_path_that_is_not_there_is_told(
    tool: Tools, run: Containers, tmp_path: Path
) -> None:
    script = "busybox mkdir -p /ckpt/deep/er; echo 1 > /ckpt/a; echo 2 > /ckpt/deep/er/b; sleep 999"
    job = run(script, labels={"dltools.checkpoint": "/ckpt"})
    eventually(lambda: job.engine.run(job.id, ["cat", "/ckpt/deep/er/b"]), lambda code: code == 0)
    done = tool("dl-apply", "--deliver-dir", tmp_path / "models", input=ordered(job))
    (result,) = records(done.stdout)
    copied = Path(result["after"]["delivered"]) / "checkpoint" / "ckpt"
    assert [(copied / name).read_text() for name in ("a", "deep/er/b")] == ["1\n", "2\n"]
    other = run("sleep 999", name="other", labels={"dltools.checkpoint": "/nowhere"})
    done = tool("dl-apply", "--deliver-dir", tmp_path / "models", input=ordered(other))
    (result,) = records(done.stdout)
    assert (done.returncode, result["status"]) == (1, "failed")
    assert "/nowhere" in result["error"] and result["error"].endswith("; it is tried again")


def test_a_path_cannot_climb_out_of_the_container(
    tool: Tools, run: Containers, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
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
    copied = [path for path in (tmp_path / "models").rglob("*") if path.is_file()]
    assert "own\n" in {path.read_text() for path in copied if path.name != "manifest.json"}
    assert all("of the host" not in path.read_text() for path in copied)


def test_a_delivery_that_failed_is_tried_again_while_the_input_is_quiet(
    tool: Tools, run: Containers, tmp_path: Path
) -> None:
    job = run("sleep 999", labels={"dltools.checkpoint": "/model"})
    running = tool.begin("dl-apply", "--deliver-dir", tmp_path / "models")
    assert running.stdout is not None
    assert feed(running, ordered(job))["status"] == "failed"
    job.engine.run(job.id, ["sh", "-c", "echo model > /model"])
    assert json.loads(running.stdout.readline())["status"] == "applied"
    running.communicate(timeout=60)
    assert running.returncode == 1  # something has failed


@pytest.mark.slow
def test_a_hook_that_sleeps_for_ever_holds_up_no_plan(
    tool: Tools, run: Containers, tmp_path: Path
) -> None:
    job = run("echo model > /model; sleep 999", labels={"dltools.checkpoint": "/model"})
    mark = f"999.{uuid.uuid4().int % 10**9}"
    hook = f"timeout 4 sh -c 'sleep {mark}'"
    running = tool.begin(
        "dl-apply",
        "--deliver-dir",
        tmp_path / "models",
        "--deliver-hook",
        hook,
        "--format",
        "jsonl",
    )
    assert running.stdout is not None
    begun = feed(running, ordered(job))
    assert (begun["status"], begun["after"]["hook"]) == ("applied", "running")
    began, ticks, failed = time.monotonic(), 0, []
    while len(failed) < 2:  # the hook is begun, killed, begun again and killed again
        ticks += 1
        share = 0.5 + ticks % 2 / 4
        give(running, plan_for(job, {"cpus": share}, expect={}))
        sent = time.monotonic()
        while (result := json.loads(running.stdout.readline()))["status"] == "failed":
            failed.append(result["error"])
        assert result["status"] == "applied", result
        assert time.monotonic() - sent < 2.5  # a plan waits for a hook a second, and for no more
        assert time.monotonic() - began < 120
        time.sleep(0.5)
    assert (
        failed
        == ["delivered, but the hook timeout failed with exit status 124; it is tried again"] * 2
    )
    assert ticks > 15
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    eventually(
        lambda: subprocess.run(["pgrep", "-f", mark], check=False).returncode,
        lambda code: code == 1,
    )


@pytest.fixture
def training() -> Iterator[str]:
    """A GRU that learns digits, and keeps its best state."""
    if not subprocess.run(["docker", "images", "-q", "dltools-torch"], capture_output=True).stdout:
        pytest.skip("no image dltools-torch: run samples/torch/build")
    name = f"dltools-test-{uuid.uuid4().hex[:8]}"
    labels = [
        f"--label={key}={value}"
        for key, value in (
            LABELS
            | {"dltools.target": "1.2", "dltools.checkpoint": "/best.pt", "dltools-test": name}
        ).items()
    ]
    subprocess.run(
        [
            "docker",
            "run",
            "-d",
            "--name",
            name,
            "--network=none",
            *labels,
            "dltools-torch",
            "--threads=1",
            "--epochs=500",
            "--best=/best.pt",
        ],
        check=True,
        capture_output=True,
    )
    yield name
    subprocess.run(["docker", "rm", "-f", name], capture_output=True, check=True)


@pytest.mark.slow
def test_a_model_that_pytorch_has_trained_loads_and_reaches_its_target(
    tool: Tools, training: str, tmp_path: Path
) -> None:
    pipe = (
        f"dl-probe -i 1 --label dltools-test={training} | dl-plan -p tradl --set itval=1 |"
        f" dl-apply --deliver-dir {tmp_path}/models --restore"
    )
    running = tool.begin_shell(pipe, tmp_path / "bin")
    assert running.stdout is not None
    found = (json.loads(line)["after"] for line in running.stdout)
    after: dict[str, Any] = next(one for one in found if "delivered" in one)
    end(running)
    model = Path(after["delivered"]) / "checkpoint" / "best.pt"
    check = (
        "import sys, types; sys.argv = ['train']; sys.path.insert(0, '/usr/local/bin');"
        "import importlib.machinery as m; t = m.SourceFileLoader('train', '/usr/local/bin/train')"
        ".load_module(); import torch; s = torch.load('/model', weights_only=True);"
        "g = t.Gru(); g.load_state_dict(s['model']); g.eval(); i, l = t.load(t.DATA, 0);"
        "c = len(i) // 5; print(g.loss(i[:c], l[:c])[0].item(), s['val_loss'])"
    )
    done = subprocess.run(
        [
            "docker",
            "run",
            "--rm",
            "--network=none",
            "-v",
            f"{model}:/model:ro",
            "--entrypoint=python3",
            "dltools-torch",
            "-c",
            check,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    loss, said = map(float, done.stdout.split())
    assert loss == pytest.approx(said, abs=1e-4)
    assert loss <= 1.2
    state = subprocess.run(
        ["docker", "inspect", "-f", "{{.State.Running}}", training], capture_output=True, text=True
    )
    assert state.stdout.strip() == "true"
