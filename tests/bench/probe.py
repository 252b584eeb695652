"""What dl-probe costs, against `docker stats --no-stream` on the same containers in one run.

    python tests/bench/probe.py [CONTAINERS]

Starts that many containers (100) that print a loss a second, for the steady state a fifth of them
50 a second, and removes them. Prints medians and ratios; nothing is asserted.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

IMAGE = "dltools-bench-busybox"
LABEL = "dltools-bench=1"
LOOP = 'i=0; while :; do i=$((i+1)); echo "step $i loss: 0.$i"; usleep {pause}; done'
PROBE = str(Path(sys.executable).parent / "dl-probe")


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
        for applet in ("sh", "usleep"):
            (root / "bin" / applet).symlink_to("busybox")
        archive = root / "image.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root / "bin", "bin")
        docker("import", "-", IMAGE, data=archive.read_bytes())


def start(count: int, lines_per_second: int) -> None:
    loop = LOOP.format(pause=1_000_000 // lines_per_second)
    for _ in range(count):
        docker("run", "-d", "--label", LABEL, "--network", "none", IMAGE, "/bin/sh", "-c", loop)


def remove() -> None:
    if found := docker("ps", "-aq", "--filter", f"label={LABEL}").split():
        docker("rm", "-f", *found)


def running() -> list[str]:
    return docker("ps", "-q", "--filter", f"label={LABEL}").split()


def median(command: list[str], times: int) -> float:
    def once() -> None:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

    return timed(once, times)


def timed(call: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def whole_process() -> None:
    """One-shot samples: the whole process, Python's start included."""
    ids = running()
    stats = median(["docker", "stats", "--no-stream", *ids], 3)
    median([PROBE, "--label", LABEL], 1)
    once = median([PROBE, "--label", LABEL], 9)
    print(f"{len(ids)} containers, whole process, median")
    print(f"  docker stats --no-stream     {stats * 1e3:8.1f} ms")
    print(f"  dl-probe                     {once * 1e3:8.1f} ms  {stats / once:6.1f} times faster")
    one = busy_time(len(ids))
    print(f"  a sample of dl-probe -i      {one * 1e3:8.1f} ms  {stats / one:6.1f} times faster")


def busy_time(count: int) -> float:
    """Return what a sample of a running probe takes, in process, rows and Arrow batch included."""
    from dltools.engine.containers import Engine
    from dltools.observations.formats.arrow import FORMAT as ARROW
    from dltools.observations.table import to_table
    from dltools.probe.sampler import Options, Sampler

    sampler = Sampler(Engine(), Options({"label": [LABEL]}, 600.0))
    sampler.follow()
    with Path(os.devnull).open("wb") as out:
        stream = ARROW.writer(out)
        stream.write(to_table(sampler.sample()))
        time.sleep(1)

        taken = []
        for _ in range(8):
            begun = time.perf_counter()
            rows = sampler.sample()
            assert sum(row["kind"] == "container" for row in rows) == count
            stream.write(to_table(rows))
            taken.append(time.perf_counter() - begun)
            time.sleep(1)
        stream.close()
    return statistics.median(taken)


def file_reads() -> float:
    """Return what the bare reads of four files of each container's cgroup take."""
    from dltools.engine import cgroup
    from dltools.engine.containers import Engine

    engine, mounts = Engine(), cgroup.mounts()
    files = []
    for id_ in running():
        found = cgroup.of_process(engine.inspect(id_).pid, mounts)
        assert found is not None
        for controller, name in (("cpu", "cpu.stat"), ("memory", "memory.stat"),
                                 ("pids", "pids.current"), ("cpu", "cpu.weight")):  # fmt: skip
            place = found.directory(controller)
            assert place is not None
            files.append(place[0] / (name if place[1] == 2 else name.replace("weight", "shares")))
    return timed(lambda: [file.read_text() for file in files], 5)


def steady(seconds: int) -> None:
    """CPU and memory of a recorder at one sample a second."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = subprocess.Popen(
            [PROBE, "--label", LABEL, "-i", "1", "-o", f"{folder}/", "--since", "1s"]
        )
        time.sleep(5)
        cpu, begun = cpu_seconds(recorder.pid), time.monotonic()
        time.sleep(seconds)
        share = (cpu_seconds(recorder.pid) - cpu) / (time.monotonic() - begun)
        recorder.terminate()
        recorder.wait()
    print(f"steady state, {len(running())} containers at 1 Hz for {seconds} s")
    print(f"  CPU of dl-probe              {share * 100:8.2f} % of a core")


def memory(samples: int) -> None:
    """Memory while that many samples are taken as fast as they come."""
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import resource\n"
        "from pathlib import Path\n"
        "from dltools.engine.containers import Engine\n"
        "from dltools.probe.sampler import Options, Sampler\n"
        "from dltools.observations.table import to_table\n"
        "from dltools.observations.recording.recorder import Recorder\n"
        f"sampler = Sampler(Engine(), Options({{'label': [{LABEL!r}]}}, 1.0))\n"
        "sampler.follow()\n"
        "recorder = Recorder(Path(sys.argv[1]), rotate_s=20.0, since_s=1.0)\n"
        f"for number in range({samples} + 1):\n"
        "    recorder.write(to_table(sampler.sample()))\n"
        f"    if number and number % {samples // 4} == 0:\n"
        "        resident = int(Path('/proc/self/statm').read_text().split()[1]) * 4096\n"
        "        print(number, round(resident / 2**20), flush=True)\n"
        "recorder.close()\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
        )
    print(f"memory while {samples} samples (an hour's worth at 1 Hz) are recorded, resident")
    for line in done.stdout.splitlines():
        count, size = line.split()
        print(f"  after {count:>5} samples          {size:>8} MiB")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def growth(counts: list[int], whole: int) -> None:
    """Time of a sample as the number of containers grows, each printing a line a second."""
    print("a sample by number of containers, each printing a line a second")
    before: tuple[int, float, float] | None = None
    for count in counts:
        start(count - len(running()), 1)
        time.sleep(2)
        sample, bare = busy_time(count), file_reads()
        slope = ""
        if before is not None:
            more = count - before[0]
            slope = (f"  {(sample - before[1]) / more * 1e3:.3f} ms a container more, "
                     f"file reads {(bare - before[2]) / more * 1e3:.3f}")  # fmt: skip
        print(f"  {count:4}                         {sample * 1e3:8.1f} ms{slope}")
        before = (count, sample, bare)
        if count == whole:
            whole_process()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as an installed one is
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    build()
    try:
        growth(sorted({1, 20, 10, 50, count, 2 * count}), count)
        remove()
        start(count // 5, 50)
        start(count - count // 5, 1)
        time.sleep(3)
        steady(60)
        memory(3600)
    finally:
        remove()
        docker("rmi", IMAGE)


if __name__ == "__main__":
    main()
