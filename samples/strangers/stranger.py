#!/usr/bin/env python3
"""Be one of those who share a machine: a training, a notebook, a member of a job, a database.

Counts what it does in steps, and keeps the count, with the time of each of its longest steps, in
the file of --out: who reads it sees how much was done, and how long this program was held up.

    stranger.py train --threads 2 [--epochs 20] [--sleep 20 --every 10] [--loaders 2]
    stranger.py notebook --cell 12
    stranger.py prepare --cpu 15
    stranger.py member --rank 0 --world 2 [--epochs 60]
    stranger.py database
    stranger.py feeder --cpu 0.02 --device 0.02
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SECOND_OF_BURST, BURST_S = 1.0, 0.05


class Record:
    """What was done so far, in a file that is whole at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.began = time.time()
        self.written = 0.0
        self.steps = 0
        self.seconds: list[float] = []
        self.done_after: float | None = None

    def step(self, seconds: float, count: int = 1) -> None:
        """Count steps that took so long together, and write the file once a second."""
        self.steps += count
        self.seconds.append(seconds)
        if time.monotonic() - self.written >= 1:
            self.write()

    def end(self) -> None:
        """Note that all is done."""
        self.done_after = time.time() - self.began
        self.write()

    def write(self) -> None:
        """Write the file."""
        self.written = time.monotonic()
        ordered = sorted(self.seconds)
        found = {
            "began": self.began,
            "steps": self.steps,
            "longest_s": ordered[-1] if ordered else None,
            "median_s": ordered[len(ordered) // 2] if ordered else None,
            "p95_s": ordered[int(0.95 * (len(ordered) - 1))] if ordered else None,
            "done_after_s": self.done_after,
        }
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.replace(self.path)


def burn(cpu_s: float) -> None:
    """Use so much CPU time on one thread."""
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        sum(range(1000))


def epoch(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    options: argparse.Namespace,
    record: Record,
) -> float:
    """Fit a model to a fixed function for --steps batches, and return its mean loss."""
    import torch

    total = 0.0
    for inputs in itertools.islice(batches(options), options.steps):
        begin = time.monotonic()
        wanted = torch.sin(inputs[:, :2].sum(dim=1, keepdim=True))
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        record.step(time.monotonic() - begin)
    return total / options.steps


def batches(options: argparse.Namespace) -> Iterable[torch.Tensor]:
    """Yield batches of --batch without an end; --loaders forked processes make them, if asked."""
    import torch

    class Made(torch.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[torch.Tensor]:
            while True:
                yield torch.randn(options.batch, 64)

    loaders = getattr(options, "loaders", 0)
    if not loaders:
        return Made()
    return torch.utils.data.DataLoader(Made(), batch_size=None, num_workers=loaders)


def train(options: argparse.Namespace, record: Record) -> None:
    """Train on --threads threads, and sleep for --sleep seconds after --every epochs."""
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    wide = options.width
    model = torch.nn.Sequential(
        torch.nn.Linear(64, wide),
        torch.nn.ReLU(),
        torch.nn.Linear(wide, wide),
        torch.nn.ReLU(),
        torch.nn.Linear(wide, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for number in epochs(options):
        print(f"epoch {number} loss {epoch(model, optimizer, options, record):.5f}", flush=True)
        if options.sleep and number % options.every == 0:
            time.sleep(options.sleep)


def member(options: argparse.Namespace, record: Record) -> None:
    """Train with the other members of a job: each step waits for all of them (gloo)."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    os.environ |= {"RANK": str(options.rank), "WORLD_SIZE": str(options.world)}
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for number in epochs(options):
        loss = epoch(model, optimizer, options, record)
        if options.rank == 0:
            print(f"epoch {number} loss {loss:.5f}", flush=True)


def epochs(options: argparse.Namespace) -> Iterable[int]:
    """Return the numbers of the epochs to train, from 1."""
    return range(1, options.epochs + 1) if options.epochs else itertools.count(1)


def database(options: argparse.Namespace, record: Record) -> None:  # noqa: ARG001
    """Answer without an end: 20 ms of work at a time, without a word."""
    while True:
        begin = time.monotonic()
        burn(0.02)
        record.step(time.monotonic() - begin)


def feeder(options: argparse.Namespace, record: Record) -> None:
    """Feed a device: work on one thread, then wait as long as a GPU would take for the step."""
    done = 0
    while True:
        begin = time.monotonic()
        burn(options.cpu)
        time.sleep(options.device)
        done += 1
        record.step(time.monotonic() - begin)
        if done % 50 == 0:
            print(f"step {done} loss {2 / (1 + done / 500):.5f}", flush=True)


def notebook(options: argparse.Namespace, record: Record) -> None:
    """Run one long cell, then a short one each second."""
    burn(options.cell)
    while True:
        begin = time.monotonic()
        burn(BURST_S)
        took = time.monotonic() - begin
        record.step(took)
        time.sleep(max(0.0, SECOND_OF_BURST - took))


def prepare(options: argparse.Namespace, record: Record) -> None:
    """Use so much CPU time, in silence."""
    for _ in range(round(options.cpu / 0.05)):
        begin = time.monotonic()
        burn(0.05)
        record.step(time.monotonic() - begin)


def main() -> None:
    """Be what the first argument says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("train")
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--width", type=int, default=1024)
    one.add_argument("--batch", type=int, default=128)
    one.add_argument("--steps", type=int, default=40, help="of an epoch, which prints a line")
    one.add_argument("--epochs", type=int, default=0, help="0: without an end")
    one.add_argument("--sleep", type=float, default=0.0, help="seconds of sleep")
    one.add_argument("--every", type=int, default=1, help="epochs between two sleeps")
    one.add_argument("--loaders", type=int, default=0, help="forked processes that make batches")
    one.add_argument("--seed", type=int, default=0)
    two = kinds.add_parser("notebook")
    two.add_argument("--cell", type=float, default=12.0, help="CPU seconds of the first cell")
    three = kinds.add_parser("prepare")
    three.add_argument("--cpu", type=float, default=15.0, help="CPU seconds")
    four = kinds.add_parser("member")
    four.add_argument("--rank", type=int, required=True)
    four.add_argument("--world", type=int, default=2)
    four.add_argument("--batch", type=int, default=512)
    four.add_argument("--steps", type=int, default=40, help="of an epoch")
    four.add_argument("--epochs", type=int, default=0, help="0: without an end")
    four.add_argument("--seed", type=int, default=0)
    five = kinds.add_parser("database")
    six = kinds.add_parser("feeder")
    six.add_argument("--cpu", type=float, default=0.02, help="CPU seconds of a step")
    six.add_argument("--device", type=float, default=0.02, help="seconds on the device of a step")
    for each in (one, two, three, four, five, six):
        each.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    record = Record(options.out)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(record.write()))
    {
        "train": train,
        "notebook": notebook,
        "prepare": prepare,
        "member": member,
        "database": database,
        "feeder": feeder,
    }[options.kind](options, record)
    record.end()


if __name__ == "__main__":
    main()
