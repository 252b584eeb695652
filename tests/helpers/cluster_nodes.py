"""The nodes of a test cluster, which `tests/cluster/nodes run` has started."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from helpers.containers import eventually

NODES = Path(__file__).parents[1] / "cluster" / "nodes"
IMAGE = "dltools-test-busybox"

TRAINING = """trap 'exit 0' TERM
n=$(cat /ckpt/model 2>/dev/null || echo 0)
while :; do
    n=$((n + 1)); echo $n > /ckpt/part; busybox mv /ckpt/part /ckpt/model
    echo $n >> /ckpt/trace; echo "epoch $n val_loss: $n"
    sleep 0.2 & wait $!
done"""
"""Counts epochs, in a checkpoint and in a trace, and goes on from the checkpoint."""


class Node:
    """One node: its engine's address, and docker's commands on it."""

    def __init__(self, number: int, url: str) -> None:
        self.name, self.url = f"node{number}", url

    def __call__(self, line: str, *more: str, check: bool = True) -> str:
        """Give one of docker's commands: a line of words, and then words that may hold blanks."""
        words = ["docker", "-H", self.url, *line.split(), *more]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert not (check and done.returncode), done.stderr
        return done.stdout.strip()

    def train(
        self,
        name: str,
        folder: str,
        *options: str,
        label: str = "/ckpt/model",
        script: str = TRAINING,
    ) -> str:
        """Start a training with its checkpoint in a folder, and return its id."""
        line = f"run -d --name={name} --network=none -v={folder}:/ckpt"
        line += f" --label=dltools.checkpoint={label} --entrypoint=/bin/sh"
        return self(line, *options, IMAGE, "-c", script)

    def names(self, *filters: str) -> list[str]:
        return self("ps -a --format {{.Names}}", *filters).split()

    def get(self, name: str, template: str) -> str:
        return self("inspect", "-f", template, name)

    def create_service(self, options: str, script: str = "") -> None:
        """Create a Swarm service, on a manager; without a script it sleeps."""
        entry = "/bin/sh" if script else "/bin/sleep"
        line = f"service create -d --no-resolve-image {options} --entrypoint={entry} {IMAGE}"
        self(line, *(("-c", script) if script else ("999",)))

    def clean(self) -> None:
        for id_ in self("ps", "-aq").split():
            self("rm", "-f", id_, check=False)


def remove_services(nodes: Sequence[Node]) -> None:
    """Remove all Swarm services, and wait until none of their tasks is left."""
    if names := nodes[0]("service ls -q").split():
        nodes[0]("service rm", *names)
    tasks = "ps -q --filter=label=com.docker.swarm.task.id"
    eventually(lambda: not any(node(tasks) for node in nodes))
