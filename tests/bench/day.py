"""The tools that read recordings, whole process, over a day of 7,000 short jobs (698,000 rows).

    python tests/bench/day.py [JOBS]

Synthetic: on a host of 8 CPUs a job of two threads begins every 12 s. A quota holds each back for
all of its 100 s, so that about eight run at one time. Prints time and peak memory; nothing is
asserted.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose plan.py is another

from helpers.observed_rows import at, container, node, point  # noqa: E402

from dltools.observations.formats.parquet import FORMAT as PARQUET  # noqa: E402
from dltools.observations.table import Row, to_table  # noqa: E402

JOBS, GAP_S, INTERVAL_S, CPUS, QUOTA = 7_000, 86_400 / 7_000, 2.0, 8.0, 0.6
ONE_HOST = ("flowcon", "srtf", "las", "fair", "slaq", "tradl")
COMMANDS = (*(f"dl-sim -p {name} --from" for name in ONE_HOST), "dl-plan", "dl-report --jobs")
SETTINGS = {
    "image": "sweep",
    "cpu_limit_cores": QUOTA,
    "cpuset": "0-7",
    "owner_cpu_weight": 1024.0,
    "thread_count": 2,
    "role": "training",
    "role_reason": "reports loss",
    "memory_usage_bytes": 1 << 30,
}
"""What every sample says of a job."""


def rows(jobs: int) -> list[Row]:
    life_s = [72.0 + 4 * (number * 37 % 14) for number in range(jobs)]
    begins = [GAP_S * number for number in range(jobs)]
    used = [0.0] * jobs
    found: list[Row] = []
    first = 0
    for sample in range(math.ceil((begins[-1] + life_s[-1]) / INTERVAL_S) + 2):
        now_s = INTERVAL_S * sample
        found.append(node(now_s, CPUS) | {"cpu_seconds": 5 * now_s, "memory_total_bytes": 1 << 36})
        while first < jobs and begins[first] + life_s[first] < now_s:
            found.append(_event(begins[first] + life_s[first], first, "exit", 0))
            first += 1
        running = []
        for number in range(first, jobs):
            if begins[number] > now_s:
                break
            if begins[number] > now_s - INTERVAL_S:
                found.append(_event(begins[number], number, "start"))
            if now_s <= begins[number] + life_s[number]:
                running.append(number)
        for number in running:
            used[number] += QUOTA * min(INTERVAL_S, now_s - begins[number])
            own = {"started_at": at(begins[number]), "user": f"user{number % 20}"}
            found.append(container(now_s, _name(number), used[number], **SETTINGS, **own))
            step = round(used[number])
            loss = 2.5 * (1 + step / (20 + number % 50)) ** -0.5
            said = {"metric_original": "loss", "source": "named", "step": step}
            found.append(point(now_s - 0.5, _name(number), loss, **said))
    return found


def _name(number: int) -> str:
    return f"{number}-of-a-sweep"


def _event(now_s: float, number: int, event: str, exit_code: int | None = None) -> Row:
    row = point(now_s, _name(number), 0.0) | {"kind": "event", "metric": None, "value": None}
    return row | {"event": event, "exit_code": exit_code}


def make(file: str, jobs: int) -> None:
    found = rows(jobs)
    with Path(file).open("wb") as out:
        made = PARQUET.writer(out)
        made.write(to_table(found))
        made.close()
    print(f"{len(found)} rows of {jobs} jobs, {Path(file).stat().st_size >> 10} KiB", flush=True)


def run(command: str, file: str) -> None:
    name, *options = command.split()
    begun = time.perf_counter()
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / name), *options, file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    longest = max(map(len, said.splitlines()), default=0)
    print(
        f"  {command:22s} {time.perf_counter() - begun:6.1f} s  {usage.ru_maxrss / 1024:5.0f} MiB"
        f"  status {os.waitstatus_to_exitcode(status)}, longest line of messages {longest}",
        flush=True,
    )


def main() -> None:
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], int(sys.argv[3]))
        return
    with tempfile.TemporaryDirectory() as directory:
        file = str(Path(directory) / "day.parquet")
        jobs = sys.argv[1] if len(sys.argv) > 1 else str(JOBS)
        subprocess.run([sys.executable, __file__, "--make", file, jobs], check=True)
        for command in COMMANDS:
            run(command, file)


if __name__ == "__main__":
    main()
