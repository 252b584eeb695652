"""A server with a real GPU: what NVML says of containers, feeders beside jobs on CPUs, shares.

    python tests/bench/gpu_server.py --image IMAGE --run "--gpus all" [--parts nvml,feed]

IMAGE has Python with PyTorch for CUDA; `--run` are further options of `docker run`, and `--python`
its interpreter. The digits of samples/torch are at --digits. Prints ratios; nothing is asserted.
Needs a machine that does nothing else. All parts take twenty minutes; feed, left and levers eight.

nvml   what `dl-probe` says of a job that is on the GPU for a known part of the time, alone and
       beside one that is there all the time
feed   a training that loaders feed, beside trainings on CPUs that want half as much again as there
       is: its steps as a ratio to those alone, and theirs to those under Docker alone
share  two trainings on one GPU, which share it and which run in turn, for a half of each period
       each: steps of both together, as a ratio to what each does alone, and whether they are let go
       when dl-apply is killed
left   the same under flowcon for three minutes, every 20 s: it finds how many CPUs to leave to it
levers the same as feed, each lever set by hand: weights, `cpu.idle`, quotas, whole cores
parts  trainings that ask for parts of a GPU (--asked): what each has, and their work in all as a
       ratio to that under Docker alone
served a server with a target of 100 ms, 60 ms a request alone, beside two trainings
eight  eight servers with targets and four trainings: those that meet theirs
"""

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[2]
LABEL = "dltools-gpu-server=1"
STARTS_S = 60.0
THREADS = 4
"""Threads of each training on CPUs."""
ARMS = {
    "flowcon": "-p flowcon",
    "fair, turns": "-p fair --realize rotate",
    "fair, quotas": "-p fair --realize quota",
}


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"docker {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


class Server:
    def __init__(self, options: argparse.Namespace, out: Path) -> None:
        self.options, self.out = options, out

    def start(self, name: str, *command: str, labels: Sequence[str] = ()) -> None:
        words = ["run", "-d", "--pull", "never", "--name", f"gpu-{name}"]
        words += [word for label in (LABEL, *labels) for word in ("--label", label)]
        words += ["-v", f"{ROOT}:/dltools:ro", "-v", f"{self.out}:/out", "--network", "none"]
        words += ["--shm-size", "8g", *shlex.split(self.options.run), self.options.image]
        docker(*words, self.options.python, *command)

    def on_gpu(self, name: str, *arguments: str, labels: Sequence[str] = ()) -> None:
        self.start_on_gpu(name, *arguments, labels=labels)
        self.wait_for(name)

    def start_on_gpu(self, name: str, *arguments: str, labels: Sequence[str] = ()) -> None:
        words = ["/dltools/tests/bench/gpu_job.py", "--steps", f"/out/{name}", *arguments]
        self.start(name, *words, labels=labels)

    def wait_for(self, name: str) -> None:
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
        try:
            return (self.out / name).read_text().count("\n")
        except FileNotFoundError:
            return 0

    def epochs(self, name: str) -> int:
        return docker("logs", f"gpu-{name}").count("epoch")

    def responses(self, name: str, seconds: float) -> list[float]:
        since = time.time() - seconds
        found = [line.split() for line in (self.out / name).read_text().splitlines()]
        return [float(took) for at, _, took in found if float(at) >= since]

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
        kept = self.kept(plan)
        line = (
            f"dl-probe -i 2 --label {LABEL} | tee {kept}.arrow | dl-plan {plan} "
            f"| dl-apply --restore >{kept}.jsonl 2>{kept}.err"
        )
        state = os.environ | {"XDG_STATE_HOME": str(self.out / "state")}
        pipe = subprocess.Popen(["sh", "-c", line], start_new_session=True, env=state)
        try:
            yield pipe
        finally:
            os.killpg(pipe.pid, signal.SIGINT)
            pipe.wait(60)

    def kept(self, plan: str) -> Path:
        """Return where a pipe's streams are kept, without the ending."""
        folder = Path(self.options.keep or self.out / "streams")
        folder.mkdir(exist_ok=True)
        return folder / f"{len(list(folder.iterdir())):03}{plan.replace(' ', '_')}"

    def clear(self, names: Sequence[str]) -> None:
        self.remove()
        for name in names:
            (self.out / name).unlink()

    def remove(self) -> None:
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


def start_feeder(server: Server) -> tuple[float, list[str]]:
    """Start a training that loaders feed, then trainings on CPUs. Return its steps a second alone,
    and the names of these."""
    cpus = os.cpu_count() or 1
    server.on_gpu("fed", "--loaders", str(max(1, cpus // 4)), "--blurs", "6")
    time.sleep(5)
    (alone,) = server.rates(12, lambda: server.steps("fed"))
    print(f"{max(1, cpus // 4)} loaders, alone: {alone:.1f} steps a second")
    names = [f"cpu{number}" for number in range(max(1, cpus * 3 // 2 // THREADS))]
    for name in names:
        server.on_cpus(name, THREADS)
    time.sleep(12)
    return alone, names


def feeder_rates(server: Server, names: Sequence[str], seconds: float) -> tuple[float, float]:
    """Return the steps a second of the feeder, and the epochs a second of the others together."""
    looks = [lambda: server.steps("fed"), *(lambda n=n: server.epochs(n) for n in names)]
    fed, *others = server.rates(seconds, *looks)
    return fed, sum(others)


def measure_feed(server: Server) -> None:
    """A training that loaders feed, beside trainings on CPUs."""
    alone, names = start_feeder(server)
    work = 0.0
    for arm, plan in {"Docker alone": None, **ARMS}.items():
        with server.pipe(plan):
            time.sleep(0 if plan is None else 14)
            fed, others = feeder_rates(server, names, 18)
        work = work or others
        print(
            f"{arm}: fed {fed / alone:.2f} of alone, {len(names)} trainings of {THREADS} threads "
            f"{others / work:.2f} of Docker alone",
            flush=True,
        )


def measure_left(server: Server) -> None:
    alone, names = start_feeder(server)
    _, work = feeder_rates(server, names, 18)
    with server.pipe("-p flowcon"):
        for end in range(20, 200, 20):
            fed, others = feeder_rates(server, names, 20)
            lists = docker("exec", "gpu-cpu0", "nproc")
            print(
                f"to {end} s: fed {fed / alone:.2f} of alone, the others on {lists} CPUs "
                f"{others / work:.2f} of Docker alone",
                flush=True,
            )


def measure_levers(server: Server) -> None:
    """The same, each lever set by hand."""
    print(f"cores: {' '.join(','.join(map(str, core)) for core in cores())}")
    alone, names = start_feeder(server)
    fed_alone = cpu_seconds("fed")
    time.sleep(1)
    print(f"beside the others the feeder uses {cpu_seconds('fed') - fed_alone:.2f} CPUs")
    work = 0.0
    for lever in (*LEVERS, "nothing"):
        set_lever(lever, names)
        time.sleep(3)
        before = cpu_seconds("fed")
        fed, others = feeder_rates(server, names, 9)
        used = (cpu_seconds("fed") - before) / 9
        work = work or others
        print(
            f"{lever}: fed {fed / alone:.2f} of alone on {used:.1f} CPUs, "
            f"the others {others / work:.2f} of Docker alone",
            flush=True,
        )


LEVERS = {
    "nothing": ({}, {}),
    "weight 65536": ({"cpu-shares": "65536"}, {}),
    "weights 65536 and 2": ({"cpu-shares": "65536"}, {"cpu-shares": "2"}),
    "cpu.idle": ({"cpu-shares": "65536"}, {"idle": "1"}),
    "quotas": ({"cpu-shares": "65536"}, {"cpus": "left"}),
    "CPUs of its own": ({"cpuset-cpus": "own CPUs"}, {"cpuset-cpus": "other CPUs"}),
    "whole cores": ({"cpuset-cpus": "own cores"}, {"cpuset-cpus": "other cores"}),
    "cores before others": ({"cpu-shares": "65536"}, {"cpuset-cpus": "other cores"}),
}
"""What the feeder gets, and each of the others."""


def set_lever(lever: str, names: Sequence[str]) -> None:
    every = [cpu for core in cores() for cpu in core]
    need = len(every) // 4 + 2
    parts = {
        "own CPUs": every[:need],
        "other CPUs": every[need:],
        "own cores": [cpu for core in cores()[:need] for cpu in core],
        "other cores": [cpu for core in cores()[need:] for cpu in core],
    }
    for_feeder, for_others = LEVERS[lever]
    for name in ("fed", *names):
        asked = for_feeder if name == "fed" else for_others
        cpus = parts.get(asked.get("cpuset-cpus", ""), every)
        quota = (len(every) - need) / len(names) if "cpus" in asked else len(every)
        idle = cgroup_of(name) / "cpu.idle"
        idle.write_text("0")
        docker(
            "update",
            f"--cpu-shares={asked.get('cpu-shares', 1024)}",
            f"--cpus={quota:g}",
            f"--cpuset-cpus={','.join(map(str, cpus))}",
            f"gpu-{name}",
        )
        if "idle" in asked:
            idle.write_text("1")


def cores() -> list[list[int]]:
    """Return the CPUs of each core of the machine."""
    found = {
        path.read_text().strip()
        for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    }
    return sorted([int(cpu) for cpu in words.replace("-", ",").split(",")] for words in found)


def cgroup_of(name: str) -> Path:
    pid = docker("inspect", "-f", "{{.State.Pid}}", f"gpu-{name}")
    words = Path(f"/proc/{pid}/cgroup").read_text().split("0::", 1)[1].split()
    return Path("/sys/fs/cgroup") / words[0].lstrip("/")


def cpu_seconds(name: str) -> float:
    return int((cgroup_of(name) / "cpu.stat").read_text().split()[1]) / 1e6


def measure_share(server: Server) -> None:
    for title, arguments in {
        "all of the GPU": ["--width", "128"],
        "half of the time": ["--width", "64", "--duty", "0.5"],
    }.items():
        server.on_gpu("one", *arguments)
        (alone,) = server.rates(8, lambda: server.steps("one"))
        print(f"a training that wants {title}: {alone:.1f} steps a second alone")
        server.on_gpu("two", *arguments)
        arms = {"shared": None, "flowcon": "-p flowcon", "halves": "-p fair --realize quota"}
        for arm, plan in arms.items():
            with server.pipe(plan) as pipe:
                time.sleep(2 if plan is None else 10)
                both = server.rates(16, lambda: server.steps("one"), lambda: server.steps("two"))
                parts = " and ".join(f"{rate / alone:.2f}" for rate in both)
                print(f"{arm}: {parts}, together {sum(both) / alone:.2f}", flush=True)
                if arm == "halves" and pipe is not None:
                    kill_in_a_turn(pipe)
        server.clear(("one", "two"))


def measure_parts(server: Server) -> None:
    for words in server.options.asked.split():
        asked = [float(part) for part in words.split(",")]
        names = [f"p{number}" for number in range(len(asked))]
        server.on_gpu(names[0], "--width", "128", labels=priority(asked[0]))
        (alone,) = server.rates(6, lambda: server.steps("p0"))
        for name, part in zip(names[1:], asked[1:], strict=True):
            server.on_gpu(name, "--width", "128", labels=priority(part))
        looks = [lambda n=n: server.steps(n) for n in names]
        shared = sum(server.rates(8, *looks))
        with server.pipe("-p fair --realize quota"):
            time.sleep(34)
            had = server.rates(15, *looks)
        parts = ", ".join(f"{rate / sum(had):.3f}" for rate in had)
        print(f"asked {asked}: had {parts} of what all did, together {sum(had) / alone:.2f} of one")
        print(f"    alone, {sum(had) / shared:.2f} of Docker alone", flush=True)
        server.clear(names)


def priority(part: float) -> list[str]:
    return ["dltools.user=u", f"dltools.priority={10 * part:g}"]


def target(seconds: float) -> list[str]:
    return [f"dltools.qoe={seconds:g}", "dltools.role=server"]


def measure_served(server: Server) -> None:
    server.on_gpu("server", "--serve", "0.06", labels=target(0.1))
    time.sleep(4)
    (rate,) = server.rates(4, lambda: server.steps("server"))
    print(f"the server alone: {show_times(server.responses('server', 3))}")
    server.on_gpu("t0", "--width", "128")
    server.on_gpu("t1", "--width", "128")
    looks = [lambda n=n: server.steps(n) for n in ("server", "t0", "t1")]
    work = 0.0
    for plan in (None, "-p dqoes"):
        with server.pipe(plan):
            time.sleep(2 if plan is None else 34)
            answered, *trained = server.rates(14, *looks)
            work = work or sum(trained)
            part = sum(trained) / work
            print(f"{plan or 'Docker alone'}: {show_times(server.responses('server', 14))}, the")
            print(f"    server {answered / rate:.2f} of alone, the trainings {part:.2f} of Docker")
            print("    alone", flush=True)


def show_times(times: list[float]) -> str:
    """Return mean and p99 of response times, in words."""
    p99 = sorted(times)[len(times) * 99 // 100]
    return f"mean {1000 * mean(times):.0f} ms, p99 {1000 * p99:.0f} ms"


def measure_eight(server: Server) -> None:
    """Eight servers, whose targets ask for three quarters of the GPU, and four trainings."""
    names = [f"s{number}" for number in range(8)]
    targets = [0.16, 0.2, 0.24, 0.32, 0.16, 0.2, 0.24, 0.32]
    server.on_gpu("first", "--serve", "0.02")
    products = docker("logs", "gpu-first").split()[1]
    server.clear(["first"])
    for name, seconds in zip(names, targets, strict=True):
        words = ("--serve", "0.02", "--products", products)
        server.start_on_gpu(name, *words, labels=target(seconds))
    for name in names:
        server.wait_for(name)
    for number in range(4):
        server.on_gpu(f"t{number}", "--width", "128")
    for plan in (None, "-p dqoes"):
        with server.pipe(plan):
            time.sleep(5 if plan is None else 50)
            means = [mean(server.responses(name, 5)) for name in names]
            if plan:
                time.sleep(10)
                later = [mean(server.responses(name, 5)) for name in names]
                means = [max(pair) for pair in zip(means, later, strict=True)]
            met = sum(had <= 1.1 * one for had, one in zip(means, targets, strict=True))
            times = ", ".join(f"{1000 * had:.0f}" for had in means)
            print(f"{plan or 'Docker alone'}: {met} of 8 within 1.1 of their target; {times} ms")


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


PARTS = {
    "nvml": measure_nvml,
    "feed": measure_feed,
    "left": measure_left,
    "levers": measure_levers,
    "share": measure_share,
    "parts": measure_parts,
    "served": measure_served,
    "eight": measure_eight,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--image", required=True)
    parser.add_argument("--run", default="--gpus all")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--digits", default="/usr/share/digits/digits.csv.gz")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--asked", default="0.5,0.5 0.7,0.3 0.4,0.3,0.2,0.1")
    parser.add_argument("--keep", help="a folder for the pipes' streams")
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
