"""The same trainings under several policies on a real engine: completion times, as ratios.

    python tests/bench/live.py [SECONDS BETWEEN ARRIVALS [JOB ...]]

Needs a Docker engine and the image of samples/torch (built if need be), and a machine with nothing
else to do: jobs of two threads on two CPUs lose most of it to spinning when anything competes.
Prints; nothing is asserted. A job's completion time counts from its start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
EPOCHS = {"gru": 22, "vae": 19, "cnn": 14}  # about 7 s of work each with two threads
RUNS = (
    ("noop", None),
    ("flowcon --set itval=5", "quota"),
    ("srtf --set itval=2", "priority"),
    ("srtf --set itval=2", "rotate"),
    ("noop", None),
)


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@contextmanager
def piped(plan: str | None, label: str) -> Iterator[None]:
    """Keep the pipe running over the containers with a label, with these options of dl-plan; none
    without."""
    if plan is None:
        yield
        return
    line = (f"dl-probe -i 2 --label {label} | dl-plan {plan} "
            "| dl-apply --restore --hold 0s >/dev/null")  # fmt: skip
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    pipe = subprocess.Popen(["bash", "-c", line], env=environment, start_new_session=True)
    try:
        time.sleep(1)
        yield
    finally:
        os.killpg(pipe.pid, 15)
        pipe.wait(30)


def run(policy: str, mode: str | None, apart: float, jobs: list[str]) -> dict[str, float]:
    """Run the jobs under a policy; return the completion time of each in seconds, and the makespan
    as "makespan"."""
    label = f"dltools-live={uuid.uuid4().hex[:8]}"
    names: dict[str, str] = {}
    with piped(None if mode is None else f"-p {policy} --realize {mode}", label):
        begun = time.monotonic()
        try:
            for number, job in enumerate(jobs, 1):
                if names and apart:
                    time.sleep(apart)
                epochs = EPOCHS[job]
                names[f"{number} {job}"] = docker(
                    "run", "-d", "--label", label, "--label", f"dltools.epochs={epochs}",
                    "dltools-torch", "--model", job, "--threads", "2", "--epochs", str(epochs),
                )  # fmt: skip
            docker("wait", *names.values())
            makespan = time.monotonic() - begun
            return {**{job: lasted(name) for job, name in names.items()}, "makespan": makespan}
        finally:
            for name in names.values():
                docker("rm", "-f", name)


def lasted(name: str) -> float:
    from dltools.engine.containers import engine_time

    begun, ended, code = docker(
        "inspect", "-f", "{{.State.StartedAt}} {{.State.FinishedAt}} {{.State.ExitCode}}", name
    ).split()
    assert code == "0", f"{name} ended with {code}"
    first, last = engine_time(begun), engine_time(ended)
    assert first is not None and last is not None
    return (last - first).total_seconds()


def main() -> None:
    apart = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    subprocess.run([ROOT / "samples/torch/build"], check=True)
    jobs = sys.argv[2:] or ["gru", "vae"]
    print(f"{', '.join(jobs)}, two threads each, {apart:g} s apart, {os.cpu_count()} CPUs; s")
    head = [*jobs, "mean", "makespan", "mean/noop", "makespan/noop"]
    print(f"{'':28s}" + "".join(f"{word:>14s}" for word in head))
    base: tuple[float, float] | None = None
    for policy, mode in RUNS:
        found = run(policy, mode, apart, jobs)
        makespan = found.pop("makespan")
        mean = sum(found.values()) / len(found)
        base = base or (mean, makespan)
        cells = [*found.values(), mean, makespan, mean / base[0], makespan / base[1]]
        name = f"{policy.split()[0]} {mode or ''}"
        print(f"{name:28s}" + "".join(f"{cell:14.2f}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
