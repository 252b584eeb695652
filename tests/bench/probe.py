"""dl-probe, whole process, against `docker stats --no-stream`, on the same containers in one run.

    python tests/bench/probe.py [CONTAINERS]

Starts that many containers (20) of static busybox that print a loss each second, and removes
them. Prints medians and their ratio; nothing is asserted.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IMAGE = "dltools-bench-busybox"
LABEL = "dltools-bench=1"
LOOP = 'i=0; while :; do i=$((i+1)); echo "step $i loss: 0.$i"; sleep 1; done'


def docker(*words: str, data: bytes | None = None) -> str:
    done = subprocess.run(["docker", *words], input=data, capture_output=True, check=True)
    return done.stdout.decode().strip()


def build() -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        sys.exit("busybox is needed (Debian: apt install busybox-static)")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "bin").mkdir()
        shutil.copy(busybox, root / "bin/busybox")
        for applet in ("sh", "sleep"):
            (root / "bin" / applet).symlink_to("busybox")
        archive = root / "image.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root / "bin", "bin")
        docker("import", "-", IMAGE, data=archive.read_bytes())


@contextmanager
def containers(count: int) -> Iterator[None]:
    build()
    try:
        for _ in range(count):
            docker("run", "-d", "--label", LABEL, IMAGE, "/bin/sh", "-c", LOOP)
        time.sleep(3)
        yield
    finally:
        if found := docker("ps", "-aq", "--filter", f"label={LABEL}").split():
            docker("rm", "-f", *found)
        docker("rmi", IMAGE)


def median(command: list[str], times: int) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    probe = str(Path(sys.executable).parent / "dl-probe")
    with containers(count):
        ids = docker("ps", "-q", "--filter", f"label={LABEL}").split()
        stats = median(["docker", "stats", "--no-stream", *ids], 3)
        once = median([probe, "--label", LABEL], 7)
        window = median([probe, "--label", LABEL, "--window", "1"], 3)
    print(f"{count} containers, whole process, median")
    print(f"  docker stats --no-stream   {stats:6.2f} s")
    print(f"  dl-probe                   {once:6.2f} s   {stats / once:5.1f} times faster")
    print(f"  dl-probe --window 1        {window:6.2f} s   {stats / window:5.1f} times faster")


if __name__ == "__main__":
    main()
