"""A program that works on the stand-in for a GPU: it trains, or serves.

    python gpu_client.py SOCKET train --kernel MS --cpu MS
    python gpu_client.py SOCKET serve --kernel MS --cpu MS [--every S]

A step, or a request, computes on a CPU for `--cpu` milliseconds and has a kernel of `--kernel`
milliseconds run. A training asks for the next kernel before the last one has ended, as programs for
GPUs do; it prints its steps twice a second. A server answers one request at a time, the next one at
once, or `--every` seconds after the one before at the earliest; it prints the mean response time
twice a second. It needs the standard library alone, so that it runs in any container.
"""

import argparse
import socket
import time

AHEAD = 2
"""Kernels of a training that are on their way."""

PRINTS_S = 0.5


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def train(gpu: socket.socket, options: argparse.Namespace) -> None:
    steps, ahead, printed = 0, 0, 0.0
    while True:
        compute(options.cpu / 1000)
        gpu.sendall(b"%g\n" % options.kernel)
        ahead += 1
        if ahead == AHEAD:
            gpu.recv(1)
            ahead -= 1
            steps += 1
        if time.monotonic() - printed >= PRINTS_S:
            printed = time.monotonic()
            print(f"step {steps}, loss {1 / (1 + steps):.6f}", flush=True)


def serve(gpu: socket.socket, options: argparse.Namespace) -> None:
    requests, printed, times = 0, 0.0, []
    arrived = time.monotonic()
    while True:
        arrived = max(arrived + options.every, time.monotonic()) if options.every else None
        if arrived is not None:
            time.sleep(max(0.0, arrived - time.monotonic()))
        begun = time.monotonic()
        compute(options.cpu / 1000)
        gpu.sendall(b"%g\n" % options.kernel)
        gpu.recv(1)
        times.append(time.monotonic() - begun)
        requests += 1
        if time.monotonic() - printed >= PRINTS_S:
            printed = time.monotonic()
            mean, worst = sum(times) / len(times), max(times)
            print(
                f"requests {requests} latency_seconds {mean:.4f} latency_max_seconds {worst:.4f}",
                flush=True,
            )
            times = []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("socket")
    parser.add_argument("role", choices=("train", "serve"))
    parser.add_argument("--kernel", type=float, default=20.0)
    parser.add_argument("--cpu", type=float, default=1.0)
    parser.add_argument("--every", type=float, default=0.0)
    options = parser.parse_args()
    gpu = socket.socket(socket.AF_UNIX)
    gpu.connect(options.socket)
    (train if options.role == "train" else serve)(gpu, options)


if __name__ == "__main__":
    main()
