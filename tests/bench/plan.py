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
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose plan.py is another

from helpers.observed_rows import container, node, point  # noqa: E402

from dltools.observations.formats.parquet import FORMAT as PARQUET  # noqa: E402
from dltools.observations.table import to_table  # noqa: E402
from dltools.plan.planner import Planner  # noqa: E402
from dltools.plan.policy import registry  # noqa: E402
from dltools.plan.policy.interface import Cluster, Decision, Policy, State  # noqa: E402
from dltools.plan.realisation.options import RealisationOptions  # noqa: E402

CONTAINERS = 100


def sample(number: int, containers: int = CONTAINERS) -> pa.Table:
    """Rows of one node, its containers and a point of each."""
    now_s = 2.0 * number
    rows = [node(now_s, 16.0)]
    for n in range(containers):
        name = f"job-{n}"
        limits = {"cpu_limit_cores": 16.0, "thread_count": 1 + n % 3}
        rows.append(container(now_s, name, 0.32 * number, labels=_labels(n), **limits))
        if n % 5:
            loss = (1 + number / (20 + n)) ** -0.5
            rows.append(point(now_s, name, loss, step=number))
        else:
            rows.append(point(now_s, name, 0.1 + 0.002 * n, "latency_seconds", step=number))
    return to_table(rows)


def _labels(n: int) -> str | None:
    if n % 5 == 0:
        return '{"dltools.qoe":"0.2"}'
    target = '{"dltools.metric":"loss","dltools.target":"0.3","dltools.target.final":"0.1"}'
    return target if n % 5 == 1 else None


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
    table = pa.concat_tables(sample(number, containers) for number in range(samples))
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
        for number in range(round(rows / (2 * CONTAINERS + 1))):
            made.write(sample(number))
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
