"""A job on a GPU, run in containers by `gpu_server`: a training, which loader processes feed, or a
server.

Classifies noisy pictures that it makes itself. With `--loaders 0` the pictures lie on the GPU, so
that the GPU alone limits it; with others, each picture costs CPU time. Prints a line every ten
steps, and writes the time of each step to `--steps`. With `--serve` it answers one request after
the other instead, each of so many seconds of the GPU where it is alone, and prints the mean
response time twice a second.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

PIXELS, CLASSES = 64, 10


class Pictures(Dataset):
    """Pictures without end: one of ten patterns, noise, and a blur that takes CPU time."""

    def __init__(self, patterns: Tensor, blurs: int) -> None:
        self.patterns, self.blurs = patterns, blurs

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        label = number % CLASSES
        noise = torch.Generator().manual_seed(number)
        picture = self.patterns[label] * 0.15 + torch.randn(3, PIXELS, PIXELS, generator=noise)
        for _ in range(self.blurs):
            around = functional.avg_pool2d(functional.pad(picture[None], (1, 1, 1, 1)), 3, 1)[0]
            picture = (picture + around) / 2
        return picture, label


def block(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number in (inputs, outputs):
        layers += [nn.Conv2d(number, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2))


def batches(options: argparse.Namespace, patterns: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    if options.loaders:
        yield from DataLoader(
            Pictures(patterns, options.blurs),
            batch_size=options.batch,
            num_workers=options.loaders,
            pin_memory=True,
            prefetch_factor=4,
        )
    labels = torch.arange(options.batch) % CLASSES
    made = [
        (patterns[labels] * 0.15 + torch.randn(options.batch, 3, PIXELS, PIXELS), labels)
        for _ in range(8)
    ]
    yield from itertools.cycle([(pictures.cuda(), labels.cuda()) for pictures, labels in made])


def serve(request_s: float, products: int, steps: TextIO) -> None:
    """Answer requests until somebody ends it. `products`: what a request computes, 0: as much as
    takes the seconds now."""
    one = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def answer(products: int) -> float:
        begun = time.monotonic()
        for _ in range(products):
            torch.mm(one, one)
        torch.cuda.synchronize()
        return time.monotonic() - begun

    answer(100)
    products = products or max(1, round(1000 * request_s / min(answer(1000) for _ in range(3))))
    print(f"products {products}", flush=True)
    times, printed = [], time.monotonic()
    for number in itertools.count(1):
        times.append(answer(products))
        steps.write(f"{time.time():.4f} {number} {times[-1]:.4f}\n")
        if time.monotonic() - printed >= 0.5:
            mean = sum(times) / len(times)
            print(f"requests {number} latency_seconds {mean:.4f}", flush=True)
            times, printed = [], time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loaders", type=int, default=0)
    parser.add_argument("--blurs", type=int, default=4)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--duty", type=float, default=1.0, help="part of the time on the GPU")
    parser.add_argument("--hold", type=float, default=0.0, help="GiB of GPU memory to hold")
    parser.add_argument("--serve", type=float, help="answer requests of so many seconds")
    parser.add_argument("--products", type=int, default=0, help="what a request computes")
    parser.add_argument("--steps", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if options.serve is not None:
        with options.steps.open("a", buffering=1) as steps:
            serve(options.serve, options.products, steps)
    width = options.width
    model = nn.Sequential(
        block(3, width),
        block(width, 2 * width),
        block(2 * width, 4 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, CLASSES),
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    held = torch.empty(round(options.hold * 2**30), dtype=torch.uint8, device="cuda")
    patterns = torch.randn(CLASSES, 3, PIXELS, PIXELS)
    losses, since = 0.0, time.time()
    with options.steps.open("a", buffering=1) as steps:
        for step, (pictures, labels) in enumerate(batches(options, patterns), 1):
            begun = time.time()
            on_gpu = pictures.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = functional.cross_entropy(model(on_gpu[0]), on_gpu[1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += loss.item()
            spent = time.time() - begun
            if options.duty < 1:
                time.sleep(spent / options.duty - spent)
            steps.write(f"{time.time():.4f} {step}\n")
            if step % 10 == 0:
                now = time.time()
                rate = 10 * options.batch / (now - since)
                print(f"step {step} loss {losses / 10:.4f} images/s {rate:.0f}", flush=True)
                losses, since = 0.0, now
    del held


main()
