"""The nodes of a test cluster, which `tests/cluster/nodes run` has started."""

import subprocess
from pathlib import Path

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

    def __call__(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["docker", "-H", self.url, *arguments], capture_output=True, text=True, check=False
        )
        assert not (check and done.returncode), done.stderr
        return done.stdout.strip()

    def train(self, name: str, folder: str, *options: str, label: str = "/ckpt/model") -> str:
        """Start a training with its checkpoint in a folder, and return its id."""
        return self(
            "run",
            "-d",
            "--name",
            name,
            "--network=none",
            "-v",
            f"{folder}:/ckpt",
            f"--label=dltools.checkpoint={label}",
            *options,
            "--entrypoint=/bin/sh",
            IMAGE,
            "-c",
            TRAINING,
        )

    def names(self, *filters: str) -> list[str]:
        return self("ps", "-a", "--format", "{{.Names}}", *filters).split()

    def get(self, name: str, template: str) -> str:
        return self("inspect", "-f", template, name)

    def down(self) -> None:
        subprocess.run([NODES, "down", self.name], check=True)

    def up(self) -> None:
        subprocess.run([NODES, "up", self.name], check=True)

    def cut(self) -> None:
        """Take the node off the network; its engine's socket still answers."""
        subprocess.run([NODES, "cut", self.name], check=True)

    def join(self) -> None:
        """Put it back on the network."""
        subprocess.run([NODES, "join", self.name], check=True)

    def clean(self) -> None:
        for id_ in self("ps", "-aq").split():
            self("rm", "-f", id_, check=False)
