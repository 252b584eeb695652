"""dl-plan, whole process, over recordings of up to a million rows, and one decision in process.

    python tests/bench/plan.py [ROWS ...]

Synthetic: 100 containers, a sample every 2 s with one point each; half of them fall as a power
law, some serve. Prints; nothing is asserted.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.schema import arrow_schema
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.interface import Cluster, Decision, Policy, State
from dltools.plan.realisation.mode import RealisationOptions

CONTAINERS = 100
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def recording(samples: int, containers: int = CONTAINERS) -> pa.Table:
    """Rows of one node, its containers and a point of each, column by column."""
    columns: dict[str, list[object]] = {
        name: []
        for name in (
            "time",
            "host",
            "kind",
            "container_id",
            "container_name",
            "state",
            "started_at",
            "labels",
            "cpu_count",
            "cpu_seconds",
            "cpu_limit_cores",
            "cpu_weight",
            "thread_count",
            "metric",
            "value",
            "step",
        )
    }
    width = len(columns)
    add = [column.append for column in columns.values()]
    ids = [f"{number:064x}" for number in range(containers)]
    names = [f"job-{number}" for number in range(containers)]
    target = '{"dltools.metric":"loss","dltools.target":"0.3","dltools.target.final":"0.1"}'
    labels = [
        '{"dltools.qoe":"0.2"}' if n % 5 == 0 else target if n % 5 == 1 else None
        for n in range(containers)
    ]
    for sample in range(samples):
        now = BEGUN + timedelta(seconds=2 * sample)
        row = [now, "node", "node", *[None] * 5, 16.0, *[None] * (width - 9)]
        for put, value in zip(add, row, strict=True):
            put(value)
        for n in range(containers):
            serves = n % 5 == 0
            metric = "latency_seconds" if serves else "loss"
            value = 0.1 + 0.002 * n if serves else (1 + sample / (20 + n)) ** -0.5
            for row in (
                [
                    now,
                    "node",
                    "container",
                    ids[n],
                    names[n],
                    "running",
                    BEGUN,
                    labels[n],
                    None,
                    0.32 * sample,
                    16.0,
                    1024.0,
                    1 + n % 3,
                    None,
                    None,
                    None,
                ],
                [now, "node", "progress", ids[n], names[n], *[None] * 8, metric, value, sample],
            ):
                for put, item in zip(add, row, strict=True):
                    put(item)
    schema = arrow_schema()
    rows = len(columns["time"])
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(rows, f.type)
        for f in schema
    ]
    return pa.table(arrays, schema=schema)


def whole_process(sizes: list[int]) -> None:
    plan = str(Path(sys.executable).parent / "dl-plan")
    print("whole process: rows, seconds, peak memory")
    with tempfile.TemporaryDirectory() as directory:
        for rows in sizes:  # in a process of its own: a child begins with its parent's memory
            file = str(Path(directory) / f"{rows}.parquet")
            subprocess.run([sys.executable, __file__, "--make", file, str(rows)], check=True)
        for name in sorted(registry.policies([])):
            for rows in sizes:
                begun = time.perf_counter()
                process = subprocess.Popen(
                    [plan, "--policy", name, str(Path(directory) / f"{rows}.parquet")],
                    stdout=subprocess.DEVNULL,
                )
                _, status, usage = os.wait4(process.pid, 0)
                taken = time.perf_counter() - begun
                assert status == 0
                each = taken / rows * 1e6
                print(
                    f"  {name:8s} {rows:8d} rows  {taken:5.2f} s  {each:5.2f} us/row"
                    f"  {usage.ru_maxrss / 1024:4.0f} MiB",
                    flush=True,
                )


def one_decision(containers: int = 160, samples: int = 240) -> None:
    print(f"one decision of {containers} containers, in process: mean, 99th percentile, worst, ms")
    table = recording(samples, containers)
    for name, policy in sorted(registry.policies([]).items()):
        timed = Timed(policy)
        made = Planner(timed, policy.parameters(), RealisationOptions())
        made.add(table)
        made.complete()
        last = sorted(timed.taken)
        print(
            f"  {name:8s} {len(last):3d} decisions  {statistics.mean(last):6.2f}"
            f"  {last[max(0, int(len(last) * 0.99) - 1)]:6.2f}  {last[-1]:6.2f}"
        )


def make(file: str, rows: int) -> None:
    with Path(file).open("wb") as out:
        made = PARQUET.writer(out)
        made.write(recording(round(rows / (2 * CONTAINERS + 1))))
        made.close()


class Timed:
    def __init__(self, policy: Policy) -> None:
        self.name, self.help, self.parameters = policy.name, policy.help, policy.parameters
        self.requirements = policy.requirements
        self._decide = policy.decide
        self.taken: list[float] = []

    def decide(self, cluster: Cluster, parameters: Any, state: State) -> Decision:
        begun = time.perf_counter()
        found = self._decide(cluster, parameters, state)
        self.taken.append((time.perf_counter() - begun) * 1e3)
        return found


def main() -> None:
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], int(sys.argv[3]))
        return
    sizes = [int(word) for word in sys.argv[1:]] or [125_000, 250_000, 500_000, 1_000_000]
    whole_process(sizes)
    one_decision()


if __name__ == "__main__":
    main()
