"""A server with a real GPU: what NVML says of containers, feeders beside jobs on CPUs, turns.

    python tests/bench/gpu_server.py --image IMAGE --run "--gpus all" [--parts nvml,feed,share]

IMAGE has Python with PyTorch for CUDA; `--run` are further options of `docker run`, and `--python`
its interpreter. The digits of samples/torch are at --digits. Prints ratios; nothing is asserted.
Needs a machine that does nothing else. Takes six minutes.

nvml   what `dl-probe` says of a job that is on the GPU for a known part of the time, alone and
       beside one that is there all the time
feed   a training that loaders feed, beside trainings on CPUs that want half as much again as there
       is: its steps as a ratio to those alone, and theirs to those under Docker alone
share  two trainings on one GPU, which share it and which take turns: steps of both together, as a
       ratio to what each does alone, and whether they are let go when dl-apply is killed
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[2]
LABEL = "dltools-gpu-server=1"
STARTS_S = 60.0
ARMS = {
    "flowcon": "-p flowcon",
    "fair, turns": "-p fair --realize rotate",
    "fair, quotas": "-p fair --realize quota",
}


def docker(*words: str) -> str:
    """Run docker, and return what it prints."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"docker {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


class Server:
    """The containers of one part of the bench."""

    def __init__(self, options: argparse.Namespace, out: Path) -> None:
        self.options, self.out = options, out

    def start(self, name: str, *command: str) -> None:
        """Start a container that has a GPU."""
        words = ["run", "-d", "--pull", "never", "--label", LABEL, "--name", f"gpu-{name}"]
        words += ["-v", f"{ROOT}:/dltools:ro", "-v", f"{self.out}:/out", "--network", "none"]
        words += ["--shm-size", "8g", *shlex.split(self.options.run), self.options.image]
        docker(*words, self.options.python, *command)

    def on_gpu(self, name: str, *arguments: str) -> None:
        """Start a training on the GPU, and wait until it has made steps."""
        self.start(name, "/dltools/tests/bench/gpu_job.py", "--steps", f"/out/{name}", *arguments)
        until = time.monotonic() + STARTS_S
        while self.steps(name) < 10:
            if time.monotonic() > until:
                sys.exit(f"{name} does not start: {docker('logs', '--tail', '5', f'gpu-{name}')}")
            time.sleep(0.5)

    def on_cpus(self, name: str, threads: int) -> None:
        """Start a training that uses CPUs alone."""
        words = ["/dltools/samples/torch/train.py", "--model", "gru", "--epochs", "1000000"]
        words += ["--threads", str(threads), "--data", self.options.digits]
        self.start(name, *words)

    def steps(self, name: str) -> int:
        """Return the steps of a training on the GPU so far."""
        try:
            return (self.out / name).read_text().count("\n")
        except FileNotFoundError:
            return 0

    def epochs(self, name: str) -> int:
        """Return the epochs of a training on CPUs so far."""
        return docker("logs", f"gpu-{name}").count("epoch")

    def rates(self, seconds: float, *looks: Callable[[], int]) -> list[float]:
        """Return how much each look counts in a second."""
        before, begun = [look() for look in looks], time.monotonic()
        time.sleep(seconds)
        after, span = [look() for look in looks], time.monotonic() - begun
        return [(now - was) / span for was, now in zip(before, after, strict=True)]

    @contextmanager
    def pipe(self, plan: str | None) -> Iterator[subprocess.Popen[bytes] | None]:
        """Run the pipe with a policy, none for Docker alone."""
        if plan is None:
            yield None
            return
        line = f"dl-probe -i 2 --label {LABEL} | dl-plan {plan} | dl-apply --restore >/dev/null"
        state = os.environ | {"XDG_STATE_HOME": str(self.out / "state")}
        pipe = subprocess.Popen(["sh", "-c", line], start_new_session=True, env=state)
        try:
            yield pipe
        finally:
            os.killpg(pipe.pid, signal.SIGINT)
            pipe.wait(60)

    def remove(self) -> None:
        """Remove all containers."""
        if found := docker("ps", "-aq", "--filter", f"label={LABEL}").split():
            docker("rm", "-f", *found)


def rows_of(seconds: int) -> list[dict[str, object]]:
    """Return the rows about GPUs of samples at every other second."""
    line = f"dl-probe -i 2 -c {seconds // 2} --format jsonl --label {LABEL}"
    done = subprocess.run(shlex.split(line), capture_output=True, text=True, check=False)
    print(done.stderr, end="", file=sys.stderr)
    return [row for text in done.stdout.splitlines() if (row := json.loads(text))["kind"] == "gpu"]


def show_gpu(seconds: int) -> None:
    """Print the means of what NVML says of the GPU and of each container on it."""
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for row in rows_of(seconds):
        found[str(row.get("container_name") or "the GPU")].append(row)  # type: ignore[arg-type]
    for name, rows in sorted(found.items()):
        parts = []
        for column in ("gpu_utilization_ratio", "gpu_sm_ratio", "gpu_memory_used_bytes"):
            known = [row[column] for row in rows if row.get(column) is not None]
            scale = 2**20 if column.endswith("bytes") else 1
            if known:
                low, high = min(known) / scale, max(known) / scale
                parts.append(f"{column} {mean(known) / scale:.2f} ({low:.2f} to {high:.2f})")
        print(f"    {name}: {', '.join(parts)}")
    print(flush=True)


def measure_nvml(server: Server) -> None:
    """What NVML says of jobs of which is known what they do."""
    server.on_gpu("part", "--duty", "0.3", "--hold", "2")
    print("a job that is on the GPU for 0.3 of the time and holds 2 GiB:")
    show_gpu(16)
    server.on_gpu("whole", "--width", "128")
    print("beside one that is on it all the time:")
    show_gpu(24)


def measure_feed(server: Server) -> None:
    """A training that loaders feed, beside trainings on CPUs."""
    cpus = os.cpu_count() or 1
    loaders, threads = max(1, cpus // 4), 4
    server.on_gpu("fed", "--loaders", str(loaders), "--blurs", "6")
    time.sleep(5)
    (alone,) = server.rates(15, lambda: server.steps("fed"))
    print(f"{loaders} loaders, alone: {alone:.1f} steps a second")
    names = [f"cpu{number}" for number in range(max(1, cpus * 3 // 2 // threads))]
    for name in names:
        server.on_cpus(name, threads)
    time.sleep(12)
    work = 0.0
    for arm, plan in {"Docker alone": None, **ARMS}.items():
        with server.pipe(plan):
            time.sleep(0 if plan is None else 14)
            looks = [lambda: server.steps("fed"), *(lambda n=n: server.epochs(n) for n in names)]
            fed, *others = server.rates(18, *looks)
        work = work or sum(others)
        print(
            f"{arm}: fed {fed / alone:.2f} of alone, {len(names)} trainings of {threads} threads "
            f"{sum(others) / work:.2f} of Docker alone",
            flush=True,
        )


def measure_share(server: Server) -> None:
    """Two trainings on one GPU."""
    for title, arguments in {
        "all of the GPU": ["--width", "128"],
        "half of the time": ["--width", "64", "--duty", "0.5"],
    }.items():
        server.on_gpu("one", *arguments)
        (alone,) = server.rates(8, lambda: server.steps("one"))
        print(f"a training that wants {title}: {alone:.1f} steps a second alone")
        server.on_gpu("two", *arguments)
        arms = {"shared": None, "flowcon": "-p flowcon", "turns": "-p fair --realize rotate"}
        for arm, plan in arms.items():
            with server.pipe(plan) as pipe:
                time.sleep(2 if plan is None else 10)
                both = server.rates(16, lambda: server.steps("one"), lambda: server.steps("two"))
                parts = " and ".join(f"{rate / alone:.2f}" for rate in both)
                print(f"{arm}: {parts}, together {sum(both) / alone:.2f}", flush=True)
                if arm == "turns" and pipe is not None:
                    kill_in_a_turn(pipe)
        server.remove()
        for file in ("one", "two"):
            (server.out / file).unlink()


def kill_in_a_turn(pipe: subprocess.Popen[bytes]) -> None:
    """Kill dl-apply while a container is paused, and print how long that one stays so."""

    def paused() -> list[str]:
        return docker("ps", "-q", "--filter", "status=paused", "--filter", f"label={LABEL}").split()

    until = time.monotonic() + 20
    while not paused():
        if time.monotonic() > until:
            print("    nobody was paused")
            return
        time.sleep(0.05)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            words = (process / "cmdline").read_bytes().split(b"\0")
            of_the_pipe = os.getpgid(int(process.name)) == pipe.pid
            if of_the_pipe and words[-3:-1] == [b"dl-apply", b"--restore"]:
                os.kill(int(process.name), signal.SIGKILL)
    begun = time.monotonic()
    while paused() and time.monotonic() < begun + 60:
        time.sleep(0.05)
    print(f"    dl-apply killed: the paused one runs again after {time.monotonic() - begun:.1f} s")


PARTS = {"nvml": measure_nvml, "feed": measure_feed, "share": measure_share}


def main() -> None:
    """Measure the parts that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--image", required=True)
    parser.add_argument("--run", default="--gpus all")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--digits", default="/usr/share/digits/digits.csv.gz")
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    for part in options.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(options, Path(folder))
            print(f"\n{part}", flush=True)
            try:
                PARTS[part](server)
            finally:
                server.remove()


if __name__ == "__main__":
    main()
