"""What turns win for trainings that are Slurm's jobs on one node: left alone, and under the pipe.

    tests/engines/slurm run .venv/bin/python tests/bench/slurm_jobs.py [ROOT]

Two PyTorch trainings of two threads, GRU and VAE, are submitted at once, and each may use all CPUs.
Prints when each is done, mean and makespan (s since they were submitted), and what the pipe did.
Nothing is asserted. ROOT is the unpacked image of samples/torch; without it, that image is unpacked
from Docker. Needs root, and a machine that does nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

IMAGE = "dltools-torch"
JOBS = {"gru": 44, "vae": 38}
"""Epochs: some 14 s of each alone."""

PIPE = (
    "dl-probe --host slurm: -i 5s | dl-plan --policy flowcon --set itval=5 --quantum 30s |"
    " dl-apply --host slurm:"
)
LONGEST_S = 400.0


def unpack(root: Path) -> None:
    """Unpack the image."""
    made = _run("docker", "create", IMAGE).strip()
    try:
        with subprocess.Popen(["docker", "export", made], stdout=subprocess.PIPE) as export:
            subprocess.run(["tar", "-x", "-C", root], stdin=export.stdout, check=True)
    finally:
        _run("docker", "rm", made)


def submit(root: Path, folder: Path, name: str, epochs: int) -> str:
    """Submit a training, which writes down when it is done. Return the number of its job."""
    train = f"python3 /usr/local/bin/train --model {name} --threads 2 --epochs {epochs}"
    script = folder / name
    script.write_text(f"#!/bin/sh\nchroot {root} {train}\ndate +%s.%N >{folder}/{name}.done\n")
    script.chmod(0o755)
    words = ("-J", name, "-o", str(folder / f"{name}.log"), "-c", str(os.cpu_count() or 1))
    return _run("sbatch", "--parsable", *words, str(script)).strip()


def measure(root: Path, pipe: str) -> None:
    """Run the trainings beside a pipe ("": none), and print what came of it."""
    with tempfile.TemporaryDirectory() as text:
        folder, begun = Path(text), time.time()
        tools, results = None, folder / "results"
        if pipe:
            env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                   "DLTOOLS_STATE_DIR": f"{folder}/state"}  # fmt: skip
            with results.open("wb") as out:
                tools = subprocess.Popen(
                    ["sh", "-c", pipe], stdout=out, start_new_session=True, env=env
                )
            time.sleep(4)
            begun = time.time()
        numbers = [submit(root, folder, name, epochs) for name, epochs in JOBS.items()]
        done = {name: folder / f"{name}.done" for name in JOBS}
        while not all(map(Path.exists, done.values())) and time.time() < begun + LONGEST_S:
            time.sleep(1)
        time.sleep(1)
        for number in numbers:
            subprocess.run(["scancel", number], capture_output=True, check=False)
        ends = {
            name: float(path.read_text()) - begun if path.exists() else float("inf")
            for name, path in done.items()
        }
        print(f"== {pipe or 'left alone'}")
        print(", ".join(f"{name} {end:.1f} s" for name, end in ends.items()), end="; ")
        print(f"mean {sum(ends.values()) / len(ends):.1f} s, makespan {max(ends.values()):.1f} s")
        if tools is not None:
            os.killpg(tools.pid, signal.SIGTERM)
            tools.wait(60)
            found = map(json.loads, results.read_text().splitlines())
            print(Counter((one["kind"], one.get("status"), one.get("error")) for one in found))


def main() -> None:
    """Run both arms."""
    with tempfile.TemporaryDirectory() as text:
        root = Path(sys.argv[1] if len(sys.argv) > 1 else text)
        if not (root / "usr").exists():
            unpack(root)
        mounted = [root / name for name in ("proc", "dev")]
        for path in mounted:
            _run("mount", "--bind", f"/{path.name}", str(path))
        try:
            for pipe in ("", PIPE):
                measure(root, pipe)
        finally:
            for path in mounted:
                _run("umount", "--lazy", str(path))


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


main()
