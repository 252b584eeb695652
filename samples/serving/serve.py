#!/usr/bin/env python3
"""Answer requests in a closed loop: which digits are these? On the CPU, with numpy alone.

Prints a line such as `requests 120 latency_seconds 0.0534 latency_p95_seconds 0.0712` about twice
a second: the requests so far, and the mean and the 95th percentile of the response times since
the last line. A request is --batch of the 1797 images of 8x8 pixels that scikit-learn ships as
digits.csv.gz. The model sees them --work times, each time with other noise, and averages: --work
sets how many operations a request takes, whatever the machine. The next request comes --think
seconds after the answer.
SIGTERM ends the program after the request that is running, as a good container does.
"""

from __future__ import annotations

import argparse
import gzip
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
DATA = Path("/usr/share/digits/digits.csv.gz")


def load(path: Path, seed: int) -> tuple[Array, Array]:
    """Return the images, n x 64 from 0 to 1, and their labels, shuffled."""
    with gzip.open(path) as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    order = np.random.default_rng(seed).permutation(len(table))
    return table[order, :-1] / 16, table[order, -1].astype(int)


class Model:
    """A wide layer with random weights and a linear one fitted in closed form: no long training."""

    def __init__(self, images: Array, labels: Array, hidden: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.first = rng.normal(0, 0.3, (images.shape[1], hidden)).astype(np.float32)
        self.noise = rng.normal(0, 0.05, (16, 1, images.shape[1])).astype(np.float32)
        features = np.tanh(images @ self.first)
        square = features.T @ features + np.eye(hidden, dtype=np.float32)
        self.second = np.linalg.solve(square, features.T @ np.eye(10, dtype=np.float32)[labels])

    def answer(self, images: Array, work: int) -> Array:
        """Return the digits that the images show."""
        scores = np.zeros((len(images), 10), np.float32)
        for number in range(work):
            scores += np.tanh((images + self.noise[number % 16]) @ self.first) @ self.second
        return scores.argmax(axis=1)


class Server:
    """A loop of requests that prints its response times, and can be told to stop."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.stopping = False
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_: object) -> None:
        """Stop after the request that is running."""
        self.stopping = True

    def run(self) -> None:
        """Answer requests, a fifth of the images being held out to ask about."""
        options = self.options
        images, labels = load(options.data, options.seed)
        cut = len(images) // 5
        model = Model(images[cut:], labels[cut:], options.hidden, options.seed)
        right = int((model.answer(images[:cut], 1) == labels[:cut]).sum())
        print(f"ready: {right} of {cut} unseen digits read right", flush=True)
        rng = np.random.default_rng(options.seed)
        times: list[float] = []
        printed = time.monotonic()
        number = 0
        while not self.stopping and (options.requests == 0 or number < options.requests):
            rows = rng.integers(cut, size=options.batch)
            start = time.monotonic()
            model.answer(images[rows], options.work)
            now = time.monotonic()
            times.append(now - start)
            number += 1
            if now - printed >= options.every or number == options.requests:
                print(
                    f"requests {number} latency_seconds {np.mean(times):.4f} "
                    f"latency_p95_seconds {np.percentile(times, 95):.4f}",
                    flush=True,
                )
                printed = now
                times.clear()
            if not self.stopping:
                time.sleep(options.think)


def main() -> None:
    """Parse and serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=0, help="stop after so many; 0: never")
    parser.add_argument("--think", type=float, default=0.0, help="seconds between two requests")
    parser.add_argument("--work", type=int, default=700, help="passes through the model a request")
    parser.add_argument("--batch", type=int, default=32, help="images in a request")
    parser.add_argument("--hidden", type=int, default=1024, help="units of the wide layer")
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two lines")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=DATA)
    Server(parser.parse_args()).run()


if __name__ == "__main__":
    main()
