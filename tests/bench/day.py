"""The tools that read recordings, whole process, over a day of 7,000 short jobs (698,000 rows).

    python tests/bench/day.py [JOBS]

Synthetic: on a host of 8 CPUs a job of two threads begins every 12 s. A quota holds each back for
all of its 100 s, so that about eight run at one time. Prints time and peak memory; nothing is
asserted.
"""

import hashlib
import math
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.schema import arrow_schema

JOBS, GAP_S, INTERVAL_S, CPUS, QUOTA = 7_000, 86_400 / 7_000, 2.0, 8.0, 0.6
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
ONE_HOST = ("flowcon", "srtf", "las", "fair", "slaq", "tradl")
COMMANDS = (*(f"dl-sim -p {name} --from" for name in ONE_HOST), "dl-plan", "dl-report --jobs")


def rows(jobs: int) -> list[dict[str, Any]]:
    life_s = [72.0 + 4 * (number * 37 % 14) for number in range(jobs)]
    begins = [GAP_S * number for number in range(jobs)]
    used = [0.0] * jobs
    found: list[dict[str, Any]] = []
    first = 0
    for sample in range(math.ceil((begins[-1] + life_s[-1]) / INTERVAL_S) + 2):
        now_s = INTERVAL_S * sample
        found.append(
            _row(now_s, "node", cpu_count=CPUS, cpu_seconds=5 * now_s, memory_total_bytes=1 << 36)
        )
        while first < jobs and begins[first] + life_s[first] < now_s:
            end_s = begins[first] + life_s[first]
            found.append(_row(end_s, "event", first, event="exit", exit_code=0))
            first += 1
        running = []
        for number in range(first, jobs):
            if begins[number] > now_s:
                break
            if begins[number] > now_s - INTERVAL_S:
                found.append(_row(begins[number], "event", number, event="start"))
            if now_s <= begins[number] + life_s[number]:
                running.append(number)
        for number in running:
            used[number] += QUOTA * min(INTERVAL_S, now_s - begins[number])
            found.append(_container(now_s, number, used[number], begins[number]))
            step = round(used[number])
            found.append(
                _row(
                    now_s - 0.5,
                    "progress",
                    number,
                    metric="loss",
                    metric_original="loss",
                    value=2.5 * (1 + step / (20 + number % 50)) ** -0.5,
                    step=step,
                    source="named",
                )
            )
    return sorted(found, key=lambda row: row["time"])


def _container(now_s: float, number: int, seconds: float, begun_s: float) -> dict[str, Any]:
    return _row(
        now_s,
        "container",
        number,
        image="sweep",
        state="running",
        started_at=_moment(begun_s),
        cpu_seconds=seconds,
        cpu_limit_cores=QUOTA,
        cpu_weight=1024.0,
        cpuset="0-7",
        owner_cpu_weight=1024.0,
        thread_count=2,
        role="training",
        role_reason="reports loss",
        user=f"user{number % 20}",
        memory_usage_bytes=1 << 30,
    )


def _row(now_s: float, kind: str, number: int | None = None, **values: Any) -> dict[str, Any]:
    row = {"time": _moment(now_s), "host": "node", "kind": kind, **values}
    if number is not None:
        row["container_id"] = hashlib.sha256(str(number).encode()).hexdigest()
        row["container_name"] = f"sweep-learning-rate-{number}"
    return row


def _moment(seconds: float) -> datetime:
    return BEGUN + timedelta(seconds=seconds)


def make(file: str, jobs: int) -> None:
    import pyarrow as pa

    found = rows(jobs)
    with Path(file).open("wb") as out:
        made = PARQUET.writer(out)
        made.write(pa.Table.from_pylist(found, schema=arrow_schema()))
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
