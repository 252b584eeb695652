"""SpeCon by the tools: a converged job moves away from one that still learns, and goes on."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.cluster_nodes import Node
from helpers.containers import eventually
from helpers.tools import command, environment, records

TRAINING = """trap 'exit 0' TERM
n=$(cat /ckpt/model 2>/dev/null || echo 0)
while :; do
    n=$((n + 1)); busybox awk 'BEGIN { for (i = 0; i < 200000; i++) x += i }'
    busybox sh -c "echo $n > /ckpt/p; busybox mv /ckpt/p /ckpt/model; echo $n >> /ckpt/trace"
    loss=$((1000 - n)); [ $loss -ge FLOOR ] || loss=FLOOR
    echo "epoch $n loss: $loss"
done"""
"""Burns CPU; its loss falls by one in each epoch, down to a floor. A signal waits for a command."""


def start(node: Node, name: str, floor: int, folder: Path) -> None:
    folder.mkdir()
    node.train(name, str(folder), script=TRAINING.replace("FLOOR", str(floor)))


@pytest.fixture
def recordings(nodes: list[Node], tmp_path: Path) -> Iterator[Path]:
    """Where a probe on each node records."""
    folder = tmp_path / "recordings"
    probes = [
        subprocess.Popen(
            command("dl-probe", "-i", "1", "-o", f"{folder}/"),
            text=True,
            env=environment(DOCKER_HOST=node.url),
            stderr=subprocess.PIPE,
        )
        for node in nodes
    ]
    yield folder
    for probe in probes:
        probe.send_signal(signal.SIGTERM)
        probe.communicate(timeout=60)


def epochs(folder: Path) -> list[int]:
    trace = folder / "trace"
    return [int(line) for line in trace.read_text().split()] if trace.exists() else []


def test_the_converged_job_moves_and_goes_on(tool, nodes, recordings, tmp_path) -> None:
    start(nodes[0], "learns", 1, tmp_path / "learns")
    start(nodes[0], "converged", 990, tmp_path / "converged")
    plan = ("-p", "specon", "--set", "itval=3", "--set", "pause=1", "--every", recordings)

    def decided() -> bytes:
        done = tool("dl-plan", *plan)
        assert done.returncode == 0, done.stderr
        return done.stdout

    eventually(lambda: epochs(tmp_path / "converged"), lambda found: len(found) > 20)
    plans = eventually(decided, lambda found: b'"op":"migrate"' in found)
    hosts = [f"--host={node.url}" for node in nodes]
    results = records(tool("dl-apply", *hosts, input=plans).stdout)
    moved = [one for one in results if one["status"] == "applied"]
    assert [one["container"]["name"] for one in moved] == ["converged"], results
    (to,) = (node for node in nodes if node.name == moved[0]["after"]["host"])
    assert (nodes[0].names(), to.names()) == (["learns"], ["converged"])
    before = len(epochs(tmp_path / "converged"))
    eventually(lambda: len(epochs(tmp_path / "converged")), lambda many: many > before + 2)
    found = epochs(tmp_path / "converged")
    assert found == list(range(1, len(found) + 1)), "each epoch once, and none left out"
