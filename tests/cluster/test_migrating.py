"""Real jobs moved between real hosts: one place for each, whatever goes wrong."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers.cluster_nodes import IMAGE, Node
from helpers.containers import eventually
from helpers.moves import KILLED, goes_on, order
from helpers.tools import Tools, environment, records

from dltools.apply.migrate.migration import Step

SLEEPS = "--label=dltools.checkpoint=/ckpt/model --entrypoint=/bin/sleep"


def hosts(nodes: list[Node]) -> list[str]:
    return [f"--host={node.url}" for node in nodes]


def moved(tool: Tools, nodes: list[Node], plan: bytes, *options: str) -> list[dict[str, Any]]:
    done = tool("dl-apply", *hosts(nodes), *options, input=plan)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return records(done.stdout)


def test_a_job_moves_with_its_configuration_and_goes_on(tool, nodes, tmp_path, trace) -> None:
    a, b, _ = nodes
    options = "--cpus=0.4 --memory=64m --restart=always --env=SEED=3 --label=team=x"
    a.train("job", str(tmp_path / "ckpt"), *options.split(), "--stop-timeout=5")
    eventually(trace, lambda found: len(found) > 2)
    (result,) = moved(tool, nodes, order(a, b))
    before = len(trace())
    assert (result["status"], result["error"]) == ("applied", None)
    assert result["after"]["host"] == "node2"
    assert a.names() == []
    shown = (
        "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.RestartPolicy.Name}} "
        '{{.Config.StopTimeout}} {{index .Config.Labels "team"}} {{.Config.Env}}'
    )
    assert b.get("job", shown).startswith("400000000 67108864 always 5 x [SEED=3")
    assert before > 2
    goes_on(trace)


def refused(result: dict[str, Any]) -> str:
    assert result["status"] in ("skipped", "failed"), result
    return str(result["error"])


def test_what_cannot_be_moved_is_left_alone(tool, nodes, tmp_path) -> None:
    a, b, _ = nodes
    folder = str(tmp_path)
    a.train("protected", folder, "--label=dltools.protect=1")
    a(f"run -d --name=unlabelled --entrypoint=/bin/sleep {IMAGE} 999")
    a.train("own", "/ckpt-of-node1", label="/elsewhere/model")
    a.train("brief", folder, "--rm")
    a("volume create data")
    a.train("volume", "data")
    a(f"tag {IMAGE} only-here")
    a("commit -c", "LABEL x=1", "unlabelled", "only-here")
    a(f"run -d --name=image -v={folder}:/ckpt {SLEEPS} only-here 999")
    why = {
        name: refused(moved(tool, nodes, order(a, b, name))[0])
        for name in ("protected", "unlabelled", "own", "brief", "volume", "image")
    }
    assert why["protected"] == "protected by its label dltools.protect"
    assert why["unlabelled"].startswith("it has no label dltools.checkpoint, and would start from")
    assert why["own"].startswith("its checkpoint /elsewhere/model is not on a volume")
    assert why["brief"].startswith("it was started with --rm")
    assert why["volume"] == "its volume data is missing on node2"
    assert why["image"].endswith("is absent on node2")
    assert b.names() == []
    assert len(a("ps", "-q").split()) == 6


def test_volumes_that_hosts_do_not_share_are_noticed(tool, nodes) -> None:
    a, b, _ = nodes
    for node in (a, b):
        node("volume create data")
    a.train("job", "data")
    eventually(lambda: a("exec job cat /ckpt/model", check=False))
    error = refused(moved(tool, nodes, order(a, b))[0])
    assert error == ("not moved, it stays on node1: there is no checkpoint /ckpt/model on node2")
    b(f"run --rm -v=data:/ckpt --entrypoint=/bin/sh {IMAGE} -c", "echo another > /ckpt/model")
    error = refused(moved(tool, nodes, order(a, b))[0])
    assert "node2 has a different checkpoint than node1" in error
    assert (a.names("--filter=status=running"), b.names()) == (["job"], [])


def test_a_name_that_is_taken_and_a_start_that_fails_are_rolled_back(
    tool, nodes, tmp_path, trace
) -> None:
    a, b, _ = nodes
    a.train("job", str(tmp_path / "ckpt"), "--cpuset-cpus=0")
    eventually(trace)
    other = b(f"create --name=job {IMAGE} sh")
    assert "is already in use" in refused(moved(tool, nodes, order(a, b))[0])
    assert b.get("job", "{{.Id}}") == other
    b("rm job")
    a("rm -f job")
    volumes = f"-v={tmp_path}/ckpt:/ckpt -v=/run/dlc-only-node1:/only"
    a(f"run -d --name=job {volumes} {SLEEPS} {IMAGE} 999")
    Path("/run/dlc-only-node1").rmdir()
    error = refused(moved(tool, nodes, order(a, b))[0])
    assert "/run/dlc-only-node1" in error
    assert (a.names("--filter=status=running"), b.names()) == (["job"], [])


def test_undo_rolls_back_what_was_begun_and_says_what_it_cannot(
    tool, nodes, tmp_path, trace
) -> None:
    a, b, _ = nodes
    a.train("job", str(tmp_path / "ckpt"), "--restart=always")
    eventually(trace)
    code = KILLED.format(step=Step.START.value, before=False)
    subprocess.run(
        [sys.executable, "-c", code, *hosts(nodes)],
        input=order(a, b),
        capture_output=True,
        env=environment(),
        timeout=120,
    )
    done = tool("dl-apply", *hosts(nodes), "--undo")
    assert [one["status"] for one in records(done.stdout)] == ["applied"]
    assert (a.names("--filter=status=running"), b.names()) == (["job"], [])
    moved(tool, nodes, order(a, b))
    (result,) = records(tool("dl-apply", *hosts(nodes), "--undo").stdout)
    assert "only a plan can move it back" in refused(result)
    (result,) = moved(tool, nodes, order(b, a))
    assert result["status"] == "applied", result
    goes_on(trace)
