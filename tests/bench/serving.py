"""The same five serving containers under Docker alone and under DQoES: who meets its target.

    python tests/bench/serving.py

Needs a Docker engine and the image of samples/serving (built if need be), and a machine with
nothing else to do. A container is satisfied when the mean response time of the last 20 s is within
10 % of its target, as DQoES has it; that it is met or bettered is shown too. Prints; nothing is
asserted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
MODELS = {  # --work, target in seconds
    "scanner": (700, 0.085), "keyboard": (1400, 0.19), "meter": (1050, 0.19),
    "mail": (2100, 0.75), "archive": (2800, 1.5),
}  # fmt: skip
RUNS = (
    ("docker alone", "", 60),
    ("dqoes, weight", "-p dqoes --set itval=4 --realize weight", 180),
    ("dqoes, quota", "-p dqoes --set itval=4 --realize quota", 180),
    ("dqoes adaptive, weight", "-p dqoes --set itval=4 --set gain=adaptive --realize weight", 120),
    ("dqoes adaptive, quota", "-p dqoes --set itval=4 --set gain=adaptive --realize quota", 120),
)
LAST_S = 20


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run(options: str, seconds: float) -> dict[str, float]:
    """Serve for a while; return each model's mean response time over the last 20 s."""
    label = f"dltools-live={uuid.uuid4().hex[:8]}"
    pipe = None
    names = {
        model: docker("run", "-d", "--label", label, "--label", f"dltools.qoe={target}",
                      "dltools-serving", "--work", str(work))
        for model, (work, target) in MODELS.items()
    }  # fmt: skip
    try:
        if options:
            line = (f"dl-probe -i 2 --label {label} | dl-plan {options} "
                    "| dl-apply --restore >/dev/null")  # fmt: skip
            environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
            pipe = subprocess.Popen(["bash", "-c", line], env=environment, start_new_session=True)
        time.sleep(seconds)
        return {model: latency(name) for model, name in names.items()}
    finally:
        if pipe is not None:
            os.killpg(pipe.pid, 15)
            pipe.wait(30)
        docker("rm", "-f", *names.values())


def latency(name: str) -> float:
    log = docker("logs", "--since", f"{LAST_S}s", name)
    found = [float(value) for value in re.findall(r" latency_seconds ([\d.]+)", log)]
    return sum(found) / len(found)


def main() -> None:
    subprocess.run([ROOT / "samples/serving/build"], check=True)
    print(f"{os.cpu_count()} CPUs; mean response time of the last {LAST_S} s, of the target")
    print(f"{'':24s}" + "".join(f"{model:>10s}" for model in MODELS) + "  satisfied  met")
    for name, options, seconds in RUNS:
        found = run(options, seconds)
        parts = {model: found[model] / target for model, (_, target) in MODELS.items()}
        within = sum(abs(part - 1) <= 0.1 for part in parts.values())
        met = sum(part <= 1.1 for part in parts.values())
        print(f"{name:24s}" + "".join(f"{part:10.0%}" for part in parts.values())
              + f"  {within:d} of {len(parts)}     {met:d}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
