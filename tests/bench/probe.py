"""What dl-probe costs, against `docker stats --no-stream` on the same containers in one run.

    python tests/bench/probe.py [CONTAINERS]
    python tests/bench/probe.py --roles [CONTAINERS]

Starts that many containers (100) that print a loss a second, for the steady state a fifth of them
50 a second, for the cost of roles half of them silent, and removes them. `--roles` measures that
cost alone. Prints medians and ratios; nothing is asserted.
"""

import contextlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

IMAGE = "dltools-bench-busybox"
LABEL = "dltools-bench=1"
SILENT = "while :; do usleep 1000000; done"
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
        run(loop)


def run(script: str, *options: str) -> None:
    docker(
        "run", "-d", "--label", LABEL, "--network", "none", *options, IMAGE, "/bin/sh", "-c", script
    )


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
    from dltools.observations.formats.arrow import FORMAT as ARROW
    from dltools.observations.table import to_table

    sampler = new_sampler()
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
    from dltools.engine.docker.engine import DockerEngine

    engine, mounts = DockerEngine(), cgroup.mounts()
    files = []
    for id_ in running():
        found = cgroup.of_process(engine.inspect(id_).pid, mounts)
        assert found is not None
        for controller, name in (
            ("cpu", "cpu.stat"),
            ("memory", "memory.stat"),
            ("pids", "pids.current"),
            ("cpu", "cpu.weight"),
        ):
            place = found.directory(controller)
            assert place is not None
            files.append(place[0] / (name if place[1] == 2 else name.replace("weight", "shares")))
    return timed(lambda: [file.read_text() for file in files], 5)


def roles(count: int, ticks: int) -> None:
    """What roles, jobs of several containers and the search of processes cost in a tick: CPU time
    of samples with them and without, of the same containers, in turn.

    Half of the containers report, in jobs of four; half are silent, so that they are searched again
    and again, all of them due at the same times.
    """
    from dltools.probe import counters

    for number in range(count // 2):
        given = (f"MASTER_ADDR=10.0.0.{number // 4}", "MASTER_PORT=1", "WORLD_SIZE=4")
        run(LOOP.format(pause=1_000_000), *(f"--env={one}" for one in given))
        run(SILENT)
    time.sleep(2)
    sample_cost(new_sampler(), is_off=False)  # what it imports is in nobody's tick
    samplers = (new_sampler(), new_sampler())
    for is_off in (False, True):
        sample_cost(samplers[is_off], is_off=is_off)
    searched: list[float] = []
    search_due = counters.search_due

    def note(*arguments: Any) -> None:
        begun = time.process_time()
        search_due(*arguments)
        searched.append(time.process_time() - begun)

    counters.search_due = note
    ticked: dict[bool, list[float]] = {False: [], True: []}
    for tick in range(ticks):
        for is_off in (False, True) if tick % 2 else (True, False):
            ticked[is_off].append(sample_cost(samplers[is_off], is_off=is_off))
        time.sleep(max(0.0, 1 - ticked[False][-1] - ticked[True][-1]))
    counters.search_due = search_due
    first: dict[bool, list[float]] = {False: [], True: []}
    for number in range(14):
        first[bool(number % 2)].append(sample_cost(new_sampler(), is_off=bool(number % 2)))
    print(f"roles, members and searches: CPU time of {ticks} ticks at 1 Hz, {count} containers")
    mean = statistics.mean(ticked[True])
    for name, cost, base in (
        ("without, mean", mean, mean),
        ("with, mean", statistics.mean(ticked[False]), mean),
        ("searches, at most", max(searched), mean),
        ("without, worst tick", max(ticked[True]), max(ticked[True])),
        ("with, worst tick", max(ticked[False]), max(ticked[True])),
        ("without, first tick", statistics.median(first[True]), statistics.median(first[True])),
        ("with, first tick", statistics.median(first[False]), statistics.median(first[True])),
    ):
        print(f"  {name:29}{cost * 1e3:8.1f} ms  {cost / base:6.2f}")


def new_sampler() -> Any:
    from dltools.engine.docker.engine import DockerEngine
    from dltools.probe.sampler import Options, Sampler

    sampler = Sampler({"": DockerEngine}, Options({"label": [LABEL]}, 600.0))
    sampler.follow()
    return sampler


def sample_cost(sampler: Any, *, is_off: bool) -> float:
    """Return the CPU seconds of a sample, with roles or without."""
    from dltools.observations.table import to_table

    begun = time.process_time()
    with without_roles() if is_off else contextlib.nullcontext():
        to_table(sampler.sample())
    return time.process_time() - begun


@contextlib.contextmanager
def without_roles() -> Iterator[None]:
    """Leave out what a sample does for roles, members and OpenMP."""
    from dltools.probe import counters

    names = ("add_job_columns", "search_due")
    before = {name: getattr(counters, name) for name in names}
    columns = counters.Counters._columns_of_processes
    for name in names:
        setattr(counters, name, lambda *_: None)
    counters.Counters._columns_of_processes = lambda *_, **__: {}  # type: ignore[method-assign]
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(counters, name, function)
        counters.Counters._columns_of_processes = columns  # type: ignore[method-assign]


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
        "from dltools.engine.docker.engine import DockerEngine\n"
        "from dltools.probe.sampler import Options, Sampler\n"
        "from dltools.observations.table import to_table\n"
        "from dltools.observations.recording.recorder import Recorder\n"
        f"sampler = Sampler({{'': DockerEngine}}, Options({{'label': [{LABEL!r}]}}, 1.0))\n"
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
            slope = (
                f"  {(sample - before[1]) / more * 1e3:.3f} ms a container more, "
                f"file reads {(bare - before[2]) / more * 1e3:.3f}"
            )
        print(f"  {count:4}                         {sample * 1e3:8.1f} ms{slope}")
        before = (count, sample, bare)
        if count == whole:
            whole_process()


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--roles"]
    count = int(words[0]) if words else 100
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as an installed one is
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    build()
    try:
        if "--roles" in sys.argv:
            roles(count, 64)
            return
        growth(sorted({1, 20, 10, 50, count, 2 * count}), count)
        remove()
        start(count // 5, 50)
        start(count - count // 5, 1)
        time.sleep(3)
        steady(60)
        memory(3600)
        remove()
        roles(count, 64)
    finally:
        remove()
        docker("rmi", IMAGE)


if __name__ == "__main__":
    main()
