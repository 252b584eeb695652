"""What the pipe wins for two trainings on an engine of tests/engines: left alone, and by flowcon.

    tests/engines/slurm run .venv/bin/python tests/bench/two_trainings.py slurm [ROOT]
    tests/engines/systemd run .venv/bin/python tests/bench/two_trainings.py systemd [ROOT]

Two PyTorch trainings of two threads, GRU and VAE, start at once, and each may use all CPUs: as jobs
of Slurm, which take turns, or as scopes of systemd. Prints when each is done, mean and makespan (s
since they were started), and what the pipe did. Nothing is asserted. ROOT is the unpacked image of
samples/torch, which the engine must see; without it, that image is unpacked from Docker. Needs
root, and a machine that does nothing else.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

IMAGE = "dltools-torch"
JOBS = {"gru": 44, "vae": 38}
"""Epochs: some 14 s of each alone."""

LONGEST_S = 400.0


class Kind(NamedTuple):
    """How trainings are run on an engine: `begin` starts a script and returns a command that ends
    it. `mount` begins a command of the engine's namespace."""

    host: str
    begin: Callable[[str, Path, Path], list[str]]
    options: str = ""
    mount: tuple[str, ...] = ()


def begin_job(name: str, script: Path, log: Path) -> list[str]:
    """Submit a job of Slurm."""
    words = ("-J", name, "-o", str(log), "-c", str(os.cpu_count() or 1))
    return ["scancel", _run("sbatch", "--parsable", *words, str(script)).strip()]


def begin_scope(name: str, script: Path, log: Path) -> list[str]:
    """Start a scope of systemd."""
    scope = ("systemd-run", "--quiet", "--scope", "--slice=train.slice", f"--unit={name}")
    with log.open("wb") as file:
        subprocess.Popen(
            [*scope, "-p", "CPUAccounting=yes", "-p", "MemoryAccounting=yes", str(script)],
            stdout=file,
            stderr=file,
        )
    return ["systemctl", "stop", f"{name}.scope"]


TOP = os.environ.get("SYSTEMD_CGROUP", "")
KINDS = {
    "slurm": Kind("slurm:", begin_job, " --quantum 30s"),
    "systemd": Kind(
        f"cgroup:{TOP}/train.slice/*.scope", begin_scope, mount=("systemd-run", "-q", "--scope")
    ),
}


def unpack(root: Path) -> None:
    """Unpack the image."""
    made = _run("docker", "create", IMAGE).strip()
    try:
        with subprocess.Popen(["docker", "export", made], stdout=subprocess.PIPE) as export:
            subprocess.run(["tar", "-x", "-C", root], stdin=export.stdout, check=True)
    finally:
        _run("docker", "rm", made)


def begin(kind: Kind, root: Path, folder: Path, name: str, epochs: int) -> list[str]:
    """Start a training, which writes down when it is done. Return a command that ends it."""
    train = f"python3 /usr/local/bin/train --model {name} --threads 2 --epochs {epochs}"
    script = folder / name
    script.write_text(f"#!/bin/sh\nchroot {root} {train}\ndate +%s.%N >{folder}/{name}.done\n")
    script.chmod(0o755)
    return kind.begin(name, script, folder / f"{name}.log")


def measure(kind: Kind, root: Path, top: Path, pipe: str) -> None:
    """Run the trainings beside a pipe ("": none), and print what came of it."""
    with tempfile.TemporaryDirectory(dir=top) as text:
        folder, begun = Path(text), time.time()
        tools, results = None, folder / "results"
        if pipe:
            env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                   "DLTOOLS_STATE_DIR": f"{top}/state"}  # fmt: skip
            with results.open("wb") as out:
                tools = subprocess.Popen(
                    ["sh", "-c", pipe], stdout=out, start_new_session=True, env=env
                )
            time.sleep(4)
            begun = time.time()
        ending = [begin(kind, root, folder, name, epochs) for name, epochs in JOBS.items()]
        done = {name: folder / f"{name}.done" for name in JOBS}
        while not all(map(Path.exists, done.values())) and time.time() < begun + LONGEST_S:
            time.sleep(1)
        time.sleep(1)
        for words in ending:
            subprocess.run(words, capture_output=True, check=False)
        ends = {
            name: float(path.read_text()) - begun if path.exists() else float("inf")
            for name, path in done.items()
        }
        print(f"== {pipe or 'left alone'}")
        for name in JOBS:
            last = (folder / f"{name}.log").read_text().splitlines()[-1:]
            if last != ["done"]:
                print(f"{name} has failed: {last}")
        print(", ".join(f"{name} {end:.1f} s" for name, end in ends.items()), end="; ")
        print(f"mean {sum(ends.values()) / len(ends):.1f} s, makespan {max(ends.values()):.1f} s")
        if tools is not None:
            os.killpg(tools.pid, signal.SIGTERM)
            tools.wait(60)
            found = map(json.loads, results.read_text().splitlines())
            print(Counter((one["kind"], one.get("status"), one.get("error")) for one in found))


def main() -> None:
    """Run both arms."""
    kind = KINDS[sys.argv[1]]
    pipe = (
        f"dl-probe --host '{kind.host}' -i 5s | dl-plan --policy flowcon --set itval=5"
        f"{kind.options} | dl-apply --host '{kind.host}'"
    )
    with tempfile.TemporaryDirectory(dir=os.environ.get("SYSTEMD_FOLDER")) as text:
        root = Path(sys.argv[2] if len(sys.argv) > 2 else f"{text}/root")
        root.mkdir(exist_ok=True)
        if not (root / "usr").exists():
            unpack(root)
        mounted = [root / name for name in ("proc", "dev")]
        for path in mounted:
            _run(*kind.mount, "mount", "--bind", f"/{path.name}", str(path))
        try:
            for one in ("", pipe):
                measure(kind, root, Path(text), one)
        finally:
            for path in mounted:
                _run(*kind.mount, "umount", "--lazy", str(path))


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


main()
