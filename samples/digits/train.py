#!/usr/bin/env python3
"""Train a small classifier or autoencoder on handwritten digits, on the CPU, with numpy alone.

Prints a line such as `epoch 480 loss 0.5312 val_loss 0.5544 val_accuracy 0.8912` about twice a
second. The data are the 1797 images of 8x8 pixels that scikit-learn ships as digits.csv.gz.
An epoch is one step of full-batch gradient descent. With --normalise each step has the length
--rate, so that the loss falls at a steady pace instead of fast at first. With --loading it
waits before each epoch as if for its data, and so uses only a part of a CPU. With --epoch-cpu an
epoch takes a given CPU time, so that a job learns as much in a CPU second on any machine.
SIGTERM ends the job at the next epoch, as a good container does. --checkpoint keeps the weights
after each epoch, before its line is printed; from there the same command goes on, exactly as it
would have.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
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


class Network:
    """Fully connected layers with tanh between them."""

    def __init__(self, sizes: list[int], seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.weights: list[Array] = [
            rng.normal(0, size[0] ** -0.5, size).astype(np.float32)
            for size in itertools.pairwise(sizes)
        ]
        self.biases: list[Array] = [np.zeros(size, np.float32) for size in sizes[1:]]

    def save(self, path: Path, epoch: int) -> None:
        """Write weights and biases, whole or not at all."""
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            np.savez(file, *self.weights, *self.biases, epoch=epoch)
        part.replace(path)

    def load(self, path: Path) -> int:
        """Take on what was saved, and return the epoch after which that was."""
        with np.load(path) as saved:
            arrays = [saved[f"arr_{number}"] for number in range(len(saved.files) - 1)]
            epoch = int(saved["epoch"])
        self.weights, self.biases = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
        return epoch

    def forward(self, images: Array) -> list[Array]:
        """Return the output of each layer, the input first."""
        outputs = [images]
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            total = outputs[-1] @ weight + bias
            outputs.append(total if number == len(self.weights) - 1 else np.tanh(total))
        return outputs

    def gradients(self, outputs: list[Array], error: Array, decay: float) -> list[Array]:
        """Return the gradient of each weight, then of each bias, by backpropagation."""
        weights: list[Array] = []
        biases: list[Array] = []
        for weight, output in zip(self.weights[::-1], outputs[-2::-1], strict=True):
            weights.insert(0, output.T @ error + decay * weight)
            biases.insert(0, error.sum(axis=0))
            error = (error @ weight.T) * (1 - output**2)
        return weights + biases

    def step(self, gradients: list[Array], rate: float, normalise: bool) -> None:
        """Go downhill."""
        length = float(np.sqrt(sum(float((g * g).sum()) for g in gradients))) if normalise else 1.0
        for parameter, gradient in zip(self.weights + self.biases, gradients, strict=True):
            parameter -= np.float32(rate / max(length, 1e-12)) * gradient


def classify(scores: Array, labels: Array) -> tuple[float, float, Array]:
    """Return cross entropy, accuracy and the gradient of the scores."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    error = np.exp(logs)
    error[rows, labels] -= 1
    accuracy = float((scores.argmax(axis=1) == labels).mean())
    return float(-logs[rows, labels].mean()), accuracy, error / len(labels)


def reconstruct(output: Array, images: Array) -> tuple[float, Array]:
    """Return the mean squared error and its gradient."""
    difference = output - images
    return float((difference**2).mean()), 2 * difference / difference.size


class Job:
    """A training that prints its progress, and can be told to stop."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.stopping = False
        self.printed = 0.0
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_: object) -> None:
        """Stop after the epoch that is running."""
        self.stopping = True

    def run(self) -> None:
        """Train, a fifth of the images being held out for validation."""
        options = self.options
        images, labels = load(options.data, options.seed)
        cut = len(images) // 5
        val_images, val_labels, images, labels = (
            images[:cut],
            labels[:cut],
            images[cut:],
            labels[cut:],
        )
        sizes = {
            "softmax": [64, 10],
            "mlp": [64, options.hidden, 10],
            "autoencoder": [64, options.hidden, 64],
        }[options.model]
        network = Network(sizes, options.seed)
        saved = options.checkpoint
        done = network.load(saved) if saved and saved.exists() else 0
        begun = time.process_time()
        for epoch in range(done + 1, options.epochs + 1):
            time.sleep(options.loading)
            outputs = network.forward(images)
            loss, _, error = self.measure(outputs[-1], images, labels)
            gradients = network.gradients(outputs, error, options.decay)
            network.step(gradients, options.rate, options.normalise)
            while time.process_time() - begun < (epoch - done) * options.epoch_cpu:
                network.forward(images)  # busy, and none the wiser
            if saved:
                network.save(saved, epoch)
            due = time.monotonic() - self.printed >= options.every
            if due or self.stopping or epoch == options.epochs:
                self.printed = time.monotonic()
                output = network.forward(val_images)[-1]
                val_loss, accuracy, _ = self.measure(output, val_images, val_labels)
                tail = "" if accuracy is None else f" val_accuracy {accuracy:.4f}"
                print(f"epoch {epoch} loss {loss:.5f} val_loss {val_loss:.5f}{tail}", flush=True)
            if self.stopping:
                return

    def measure(
        self, output: Array, images: Array, labels: Array
    ) -> tuple[float, float | None, Array]:
        """Return the loss, the accuracy if there is one, and the gradient of the output."""
        if self.options.model == "autoencoder":
            loss, error = reconstruct(output, images)
            return loss, None, error
        return classify(output, labels)


def main() -> None:
    """Parse and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=("softmax", "mlp", "autoencoder"), default="mlp")
    parser.add_argument("--hidden", type=int, default=64, help="units of the hidden layer")
    parser.add_argument("--rate", type=float, default=0.5, help="learning rate")
    parser.add_argument("--normalise", action="store_true", help="steps of length --rate")
    parser.add_argument("--decay", type=float, default=0.0, help="weight decay")
    parser.add_argument("--epochs", type=int, default=10**9)
    parser.add_argument("--loading", type=float, default=0.0, help="seconds before each epoch")
    parser.add_argument("--epoch-cpu", type=float, default=0.0, help="least CPU seconds an epoch")
    parser.add_argument("--every", type=float, default=0.5, help="seconds between two lines")
    parser.add_argument("--checkpoint", type=Path, help="go on from here, and save here")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=DATA)
    np.seterr(all="ignore")  # a diverging loss is printed as nan, not warned of
    Job(parser.parse_args()).run()


if __name__ == "__main__":
    main()
