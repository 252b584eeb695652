"""Shares of the stand-in for a GPU, in real containers: asked against had, and a server's target.

    PYTHONPATH=tests python -m bench.gpu_shares [--parts shares,server,eight,killed] [--seconds 90]

Needs an engine (DOCKER_HOST) with the image of the tests, and root. Prints figures; nothing is
asserted.

shares: trainings under `fair --realize quota`, and their work as a part of that under Docker alone
server: one of 100 ms, 60 ms alone, beside two trainings, under Docker alone and `dqoes`
eight:  servers whose targets ask for half of it, beside four trainings
killed: how long after dl-apply and dl-plan are killed all run again
"""

import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

from helpers.gpu_stand_in import ENVIRONMENT, binds, client, probe_command, stand_in, used

IMAGE, LABEL = "dltools-test-busybox", "dltools-gpu-shares"
BIN = Path(sys.executable).parent
LATENCY = re.compile(r"latency_seconds (\S+) latency_max_seconds (\S+)")


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Host:
    """Containers on one stand-in."""

    def __init__(self, gpu: Path) -> None:
        self.gpu, self.names = gpu, list[str]()

    def start(self, name: str, role: str, *labels: str, **options: float) -> None:
        words = ["run", "-d", "--label", LABEL, "--name", f"{LABEL}-{name}", "--network", "none"]
        words += [word for label in labels for word in ("--label", label)]
        words += [word for bind in binds(self.gpu) for word in ("-v", bind)]
        words += ["--cpu-shares", "256", "--entrypoint", "/bin/sh", IMAGE]
        docker(*words, "-c", client(role, **options))
        self.names.append(name)

    def pids(self) -> dict[str, int]:
        names = [f"{LABEL}-{name}" for name in self.names]
        found = docker("inspect", "-f", "{{.State.Pid}}", *names).split()
        return dict(zip(self.names, map(int, found), strict=True))

    def had(self, seconds: float) -> dict[str, float]:
        """What each has of the GPU over a time."""
        pids, before, begun = self.pids(), used(self.gpu), time.monotonic()
        time.sleep(seconds)
        after, span = used(self.gpu), time.monotonic() - begun
        return {name: (after[pid] - before[pid]) / span for name, pid in pids.items()}

    def responses(self, name: str, seconds: float) -> tuple[float, float]:
        """The mean and the longest of the response times in the last seconds."""
        log = docker("logs", "--since", f"{seconds:.0f}s", f"{LABEL}-{name}")
        found = LATENCY.findall(log)
        return mean(float(one) for one, _ in found), max(float(most) for _, most in found)


@contextmanager
def host() -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as folder, stand_in(Path(folder) / "gpu") as gpu:
        made = Host(gpu)
        try:
            yield made
        finally:
            docker("rm", "-f", *(f"{LABEL}-{name}" for name in made.names))


@contextmanager
def pipe(gpu: Path, *plan: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    with tempfile.TemporaryDirectory() as state:
        environment = {**ENVIRONMENT, "XDG_STATE_HOME": state}
        tools = [
            [*probe_command(gpu), "-i", "2", "--label", LABEL],
            [str(BIN / "dl-plan"), *plan],
            [str(BIN / "dl-apply"), "--restore", "--beside", "any", "--format", "jsonl"],
        ]
        running: list[subprocess.Popen[bytes]] = []
        out = (Path(tempfile.gettempdir()) / f"{LABEL}-{os.getpid()}.jsonl").open("wb")
        for number, command in enumerate(tools):
            source = running[-1].stdout if running else subprocess.DEVNULL
            sink = subprocess.PIPE if number < 2 else out
            running.append(subprocess.Popen(command, stdin=source, stdout=sink, env=environment))
        try:
            yield running
        finally:
            for one in running:
                one.send_signal(signal.SIGTERM)
            for one in reversed(running):
                one.wait(60)


def shares(seconds: float) -> None:
    for asked in ((0.7, 0.3), (0.4, 0.3, 0.2, 0.1), (0.5, 0.5)):
        with host() as one:
            for number, part in enumerate(asked):
                labels = "dltools.user=u", f"dltools.priority={10 * part:g}"
                one.start(f"t{number}", "train", *labels, kernel=20, cpu=1)
            time.sleep(5)
            alone = sum(one.had(15).values())
            with pipe(one.gpu, "-p", "fair", "--realize", "quota"):
                time.sleep(seconds)
                had = one.had(30)
        figures = ", ".join(f"{value:.3f}" for value in had.values())
        print(f"asked {asked}: had {figures}; work {sum(had.values()) / alone:.3f} of Docker alone")


def server(seconds: float) -> None:
    with host() as one:
        one.start("server", "serve", "dltools.qoe=0.1", "dltools.role=server", kernel=60, cpu=1)
        time.sleep(8)
        print("server alone: mean {:.3f} s, longest {:.3f} s".format(*one.responses("server", 5)))
        for name in ("t0", "t1"):
            one.start(name, "train", kernel=20, cpu=1)
        for policy in ("", "dqoes"):
            if not policy:
                time.sleep(15)
                _print_server(one, "Docker alone", one.had(20))
                continue
            with pipe(one.gpu, "-p", policy):
                time.sleep(seconds)
                _print_server(one, policy, one.had(30))


def _print_server(one: Host, arm: str, had: dict[str, float]) -> None:
    times = one.responses("server", 20)
    trainings = sum(part for name, part in had.items() if name != "server")
    left = trainings / (1 - had["server"])
    print(f"{arm}: mean {times[0]:.3f} s, longest {times[1]:.3f} s; trainings {left:.2f} of what")
    print(f"  is left over; {json.dumps({name: round(part, 3) for name, part in had.items()})}")


SERVERS = (  # kernel (ms), CPU (ms), target (ms)
    (20, 4, 300),
    (20, 4, 450),
    (30, 5, 500),
    (30, 5, 600),
    (40, 6, 800),
    (40, 6, 350),
    (50, 8, 700),
    (50, 8, 1000),
)


def eight(seconds: float) -> None:
    with host() as one:
        for number, (kernel, cpu, target) in enumerate(SERVERS):
            labels = f"dltools.qoe={target / 1000:g}", "dltools.role=server"
            one.start(f"s{number}", "serve", *labels, kernel=kernel, cpu=cpu)
        for number in range(4):
            one.start(f"t{number}", "train", kernel=20, cpu=1)
        time.sleep(20)
        print(f"Docker alone: {_satisfied(one)} of 8 satisfied", flush=True)
        with pipe(one.gpu, "-p", "dqoes"):
            time.sleep(seconds)
            found = []
            for _ in range(5):
                time.sleep(20)
                found.append(_satisfied(one))
                print("  response by target:", *_ratios(one), flush=True)
            had = one.had(20)
        trainings = math.fsum(part for name, part in had.items() if name[0] == "t")
        print(f"dqoes: {found} of 8 satisfied; trainings have {trainings:.2f} of the GPU")


def _satisfied(one: Host) -> int:
    return sum(abs(ratio - 1) <= 0.1 for ratio in _ratios(one))


def _ratios(one: Host) -> list[float]:
    means = [one.responses(f"s{number}", 20)[0] for number in range(8)]
    targets = [target / 1000 for *_, target in SERVERS]
    return [round(had / want, 3) for had, want in zip(means, targets, strict=True)]


def killed(seconds: float) -> None:
    with host() as one:
        for number in range(3):
            labels = "dltools.user=u", f"dltools.priority={number + 1}"
            one.start(f"t{number}", "train", *labels, kernel=20, cpu=1)
        time.sleep(5)
        with pipe(one.gpu, "-p", "fair", "--realize", "quota") as running:
            time.sleep(min(40.0, seconds))
            until = time.monotonic() + 30
            while "paused" not in _states(one) and time.monotonic() < until:
                time.sleep(0.02)
            begun, states = time.monotonic(), _states(one)
            for process in running:
                process.kill()
            while "paused" in (after := _states(one)) and time.monotonic() < begun + 60:
                time.sleep(0.05)
            print(f"killed: {states} -> {after} after {time.monotonic() - begun:.1f} s")


def _states(one: Host) -> list[str]:
    names = [f"{LABEL}-{name}" for name in one.names]
    return docker("inspect", "-f", "{{.State.Status}}", *names).split()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default="shares,server,eight,killed")
    parser.add_argument("--seconds", type=float, default=90.0)
    options = parser.parse_args()
    parts = {"shares": shares, "server": server, "eight": eight, "killed": killed}
    for name in options.parts.split(","):
        parts[name](options.seconds)


if __name__ == "__main__":
    main()
