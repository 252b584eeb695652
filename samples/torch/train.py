#!/usr/bin/env python3
"""Train a GRU, a VAE or a CNN on handwritten digits with PyTorch, on several CPUs.

Prints a line such as `epoch 3 loss 0.5312 val_loss 0.5544 val_accuracy 0.8912` after each epoch,
every 0.3 to 0.5 s alone on two CPUs, and `done` at the end. The data are the 1797 images of 8x8
pixels that scikit-learn ships as digits.csv.gz; a fifth is held out. The GRU reads an image row
by row, the VAE reconstructs it, the CNN classifies it at four times its size.
The layers are wide enough for PyTorch to share each operation out over --threads OpenMP threads.
--checkpoint keeps the state after each epoch, before its line is printed; from there the same
command goes on, exactly as it would have. SIGTERM ends the job at the next epoch. --best keeps
the state with the lowest val_loss so far.
"""

from __future__ import annotations

import argparse
import gzip
import os
import signal
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

DATA = Path("/usr/share/digits/digits.csv.gz")


def load(path: Path, seed: int) -> tuple[Tensor, Tensor]:
    """Return the images, n x 64 from 0 to 1, and their labels, shuffled."""
    with gzip.open(path) as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    order = np.random.default_rng(seed).permutation(len(table))
    return torch.from_numpy(table[order, :-1] / 16), torch.from_numpy(table[order, -1]).long()


class Classifier(nn.Module):
    """What the GRU and the CNN have in common: scores of ten digits."""

    def loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, float | None]:
        """Return the cross entropy and the accuracy."""
        scores = self(images)
        accuracy = (scores.argmax(dim=1) == labels).float().mean().item()
        return functional.cross_entropy(scores, labels), accuracy


class Gru(Classifier):
    """Eight rows of eight pixels as a sequence."""

    epochs = 22
    batch = 288
    rate = 1e-3

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 512, batch_first=True)
        self.head = nn.Linear(512, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores after the last row."""
        outputs, _ = self.gru(images.view(-1, 8, 8))
        return self.head(outputs[:, -1])


class Cnn(Classifier):
    """Two convolutions on the upscaled image."""

    epochs = 14
    batch = 144
    rate = 2e-4

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Upsample(scale_factor=4),
            nn.Conv2d(1, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(48 * 8 * 8, 10),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores."""
        return self.layers(images.view(-1, 1, 8, 8))


class Vae(nn.Module):
    """A variational autoencoder with 16 latent variables."""

    epochs = 19
    batch = 288
    rate = 6e-4

    def __init__(self) -> None:
        super().__init__()
        wide = 2048
        self.encoder = nn.Sequential(
            nn.Linear(64, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 32)
        )
        self.decoder = nn.Sequential(
            nn.Linear(16, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 64)
        )

    def loss(self, images: Tensor, _labels: Tensor) -> tuple[Tensor, float | None]:
        """Return the error of an image plus a part of the divergence, and no accuracy."""
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        sample = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        output = self.decoder(sample)
        error = functional.mse_loss(output, images, reduction="sum")
        divergence = (mean**2 + log_variance.exp() - log_variance - 1).sum() / 2
        return (error + 0.02 * divergence) / len(images), None


MODELS: dict[str, type[Gru] | type[Vae] | type[Cnn]] = {"gru": Gru, "vae": Vae, "cnn": Cnn}


class Job:
    """A training that prints its progress, and can be told to stop."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.stopping = False
        signal.signal(signal.SIGTERM, self.stop)
        torch.set_num_threads(options.threads)
        torch.manual_seed(options.seed)
        self.model = MODELS[options.model]()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.model.rate, fused=True)
        self.epoch = 0
        self.lowest = float("inf")

    def stop(self, *_: object) -> None:
        """Stop after the epoch that is running."""
        self.stopping = True

    def run(self) -> None:
        """Train until the last epoch, the loss that is wanted or SIGTERM."""
        options = self.options
        images, labels = load(options.data, options.seed)
        cut = len(images) // 5
        self.resume()
        last = options.epochs or (self.model.epochs if options.until is None else 10**9)
        of = f"/{last}" if options.epochs else ""
        done = self.epoch >= last
        while not (done or self.stopping):
            self.epoch += 1
            loss = self.train(images[cut:], labels[cut:])
            val_loss, accuracy = self.validate(images[:cut], labels[:cut])
            tail = "" if accuracy is None else f" val_accuracy {accuracy:.4f}"
            self.save(val_loss)
            self.say(f"epoch {self.epoch}{of} loss {loss:.4f} val_loss {val_loss:.4f}{tail}")
            done = self.epoch >= last or (options.until is not None and val_loss <= options.until)
        self.say("done" if done else "stopped")

    def say(self, line: str) -> None:
        """Print a line, unless the job is to be silent."""
        if not self.options.silent:
            print(line, flush=True)

    def train(self, images: Tensor, labels: Tensor) -> float:
        """Train for an epoch and return its mean loss."""
        self.model.train()
        # Each epoch has a seed of its own, so that a resumed job needs no generator's state.
        torch.manual_seed(self.options.seed * 1_000_003 + self.epoch)
        total = 0.0
        order = torch.cat([torch.randperm(len(images)) for _ in range(self.options.passes)])
        for rows in order.split(self.options.batch or self.model.batch):
            loss, _ = self.model.loss(images[rows], labels[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows)
        return total / len(order)

    @torch.no_grad()
    def validate(self, images: Tensor, labels: Tensor) -> tuple[float, float | None]:
        """Return the loss and the accuracy on images that were held out."""
        self.model.eval()
        loss, accuracy = self.model.loss(images, labels)
        return loss.item(), accuracy

    def save(self, val_loss: float) -> None:
        """Write the checkpoints, each whole or not at all."""
        is_best = val_loss < self.lowest
        self.lowest = min(val_loss, self.lowest)
        state = {
            "epoch": self.epoch,
            "lowest": self.lowest,
            "val_loss": val_loss,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        for path, is_due in ((self.options.best, is_best), (self.options.checkpoint, True)):
            if path is not None and is_due:
                part = path.with_name(path.name + ".part")
                torch.save(state, part)
                part.replace(path)

    def resume(self) -> None:
        """Go on from the checkpoint if there is one."""
        path = self.options.checkpoint
        if path is not None and path.exists():
            state = torch.load(path, weights_only=True)
            self.epoch, self.lowest = state["epoch"], state["lowest"]
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])


def main() -> None:
    """Parse and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="gru")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--epochs", type=int, default=0, help="0: as many as suit the model")
    parser.add_argument("--batch", type=int, default=0, help="0: as many as suit the model")
    parser.add_argument("--passes", type=int, default=1, help="over the data, in an epoch")
    parser.add_argument("--silent", action="store_true", help="print nothing")
    parser.add_argument("--until", type=float, help="stop when val_loss is this low")
    parser.add_argument("--checkpoint", type=Path, help="go on from here, and save here")
    parser.add_argument("--best", type=Path, help="save the best state here")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=DATA)
    Job(parser.parse_args()).run()


if __name__ == "__main__":
    main()
