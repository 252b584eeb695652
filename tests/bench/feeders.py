"""What jobs on CPUs cost one that feeds a GPU: under Docker alone, and under the pipe.

    python tests/bench/feeders.py [--seconds 30] [--arms flowcon,fair-rotate]

The feeder of samples/strangers works for 20 ms on one thread and waits for 20 ms, as for a GPU;
beside it run three trainings of two threads that want all CPUs. dl-probe sees a faked NVML, by
which the feeder holds a GPU. Prints the feeder's steps per second as a ratio to those alone, and
the trainings' steps as a ratio to those under Docker alone. Nothing is asserted. Needs the image of
samples/torch, and a machine that does nothing else.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STRANGERS = ROOT / "samples/strangers"
IMAGE, LABEL = "dltools-torch", "dltools-feeders=1"
ARMS = {
    "flowcon": "-p flowcon",
    "srtf": "-p srtf",
    "fair": "-p fair",
    "fair-rotate": "-p fair --realize rotate",
    "fair-quota": "-p fair --realize quota",
}
PROBE = """
import sys, time
sys.path.insert(0, {tests!r})
from probe.gpu.fake_nvml import FakeNvml, Gpu
class Busy(Gpu):
    @property
    def samples(self):
        return [({pid}, int(time.time() * 1e6), 90)]
    @samples.setter
    def samples(self, value):
        pass
sys.modules["pynvml"] = FakeNvml([Busy(b"GPU-1", 90, processes={{{pid}: 1 << 30}})])
from dltools.probe.gpu import collector
collector.driver_present = lambda: True
from dltools.cli.probe import main
sys.argv = ["dl-probe", "-i", "2", "--label", {label!r}, "--format", "arrow"]
main()
"""


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"docker {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def start(name: str, out: Path, *command: str) -> str:
    return docker(
        "run",
        "-d",
        "--pull",
        "never",
        "--label",
        LABEL,
        "--name",
        f"feeders-{name}",
        "-v",
        f"{STRANGERS}:/strangers:ro",
        "-v",
        f"{out}:/out",
        "--entrypoint",
        "python3",
        IMAGE,
        "/strangers/stranger.py",
        *command,
        "--out",
        f"/out/{name}.json",
    )


def steps(out: Path, name: str) -> int:
    try:
        found: int = json.loads((out / f"{name}.json").read_text())["steps"]
    except FileNotFoundError:
        return 0
    return found


def measure(seconds: float, *, trainings: int, plan: str | None) -> tuple[float, float]:
    """Return the steps per second of the feeder, and of the trainings together."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        pipe = None
        try:
            feeder = start("gpu", out, "feeder")
            names = [f"cpu{number}" for number in range(trainings)]
            for number, name in enumerate(names):
                start(name, out, "train", "--threads", "2", "--seed", str(number))
            if plan is not None:
                pid = docker("inspect", "--format", "{{.State.Pid}}", feeder)
                code = PROBE.format(tests=str(ROOT / "tests"), pid=pid, label=LABEL)
                environment = os.environ | {
                    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                    "CODE": code,
                }
                state = f"--state-dir {out / 'state'}"
                line = f'{sys.executable} -c "$CODE" | dl-plan {plan} | dl-apply --restore {state}'
                pipe = subprocess.Popen(
                    line,
                    shell=True,
                    env=environment,
                    start_new_session=True,
                    stdout=subprocess.DEVNULL,
                )
            time.sleep(20)
            before = [steps(out, name) for name in ("gpu", *names)]
            begin = time.monotonic()
            time.sleep(seconds)
            span = time.monotonic() - begin
            done = [
                steps(out, name) - was for name, was in zip(("gpu", *names), before, strict=True)
            ]
            return done[0] / span, sum(done[1:]) / span
        finally:
            if pipe is not None:
                os.killpg(pipe.pid, signal.SIGINT)
                pipe.wait(60)
            for id_ in docker("ps", "-aq", "--filter", f"label={LABEL}").split():
                docker("rm", "-f", id_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--arms", default=",".join(ARMS))
    options = parser.parse_args()
    alone, _ = measure(options.seconds, trainings=0, plan=None)
    print(f"alone: {alone:.1f} steps a second")
    beside, work = measure(options.seconds, trainings=3, plan=None)
    print(
        f"Docker alone: feeder {beside / alone:.2f} of alone, trainings {work:.1f} steps a second"
    )
    for arm in options.arms.split(","):
        fed, done = measure(options.seconds, trainings=3, plan=ARMS[arm])
        print(
            f"{arm}: feeder {fed / alone:.2f} of alone, trainings {done / work:.2f} of Docker "
            "alone",
            flush=True,
        )


if __name__ == "__main__":
    main()
