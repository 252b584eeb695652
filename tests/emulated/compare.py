"""Hold what dl-probe says against what the engine's stats say, container by container.

Runs inside the emulated machine, with dltools importable. Counters are read before and after the
engine's: its value must lie between. Prints a line a value; exits 1 where one disagrees.
"""

import json
import subprocess
import sys
from typing import Any

PROBE = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'dl-probe'\nfrom dltools.cli.probe import main\nmain()",
    "--format",
    "jsonl",
]
SLACK_BYTES = 256 * 1024
"""The kernel charges memory in batches of pages a CPU."""


def probe() -> dict[str, dict[str, Any]]:
    out = subprocess.run(PROBE, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    return {row["container_id"]: row for row in rows if row["kind"] == "container"}


def stats(id_: str) -> dict[str, Any]:
    url = f"http://docker/containers/{id_}/stats?stream=false&one-shot=true"
    command = ["curl", "-s", "--unix-socket", "/var/run/docker.sock", url]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, check=True).stdout
    )
    return found


def main() -> None:
    before = probe()
    engine = {id_: stats(id_) for id_ in before}
    after = probe()
    wrong = 0
    for id_, said in engine.items():
        first, last = before[id_], after[id_]
        cpu, memory = said["cpu_stats"], said["memory_stats"]
        usage = memory["usage"]
        file = memory["stats"]["inactive_file"]
        values = [
            ("cpu_seconds", cpu["cpu_usage"]["total_usage"] / 1e9, 0.0),
            ("cpu_throttled_seconds", cpu["throttling_data"]["throttled_time"] / 1e9, 0.0),
            ("memory_usage_bytes", usage, SLACK_BYTES),
            ("memory_working_set_bytes", usage - file, SLACK_BYTES),
            ("memory_anon_bytes", memory["stats"]["anon"], SLACK_BYTES),
            ("memory_limit_bytes", memory["limit"], 0),
            ("thread_count", said["pids_stats"]["current"], 1),
        ]
        for name, value, slack in values:
            low, high = sorted((first[name], last[name]))
            good = low - slack - 1e-6 <= value <= high + slack + 1e-6
            wrong += not good
            print(
                f"{'ok   ' if good else 'WRONG'} {first['container_name']:8} {name:26} "
                f"engine {value:<16.9g} dl-probe {low:.9g} to {high:.9g}"
            )
        missing = [
            name
            for name in (
                "cpu_pressure_seconds",
                "memory_pressure_seconds",
                "io_pressure_seconds",
                "cpu_weight",
                "cpuset",
                "io_read_bytes",
            )
            if first.get(name) is None
        ]
        if missing:
            wrong += 1
            print(f"WRONG {first['container_name']}: no {', '.join(missing)}")
    print(f"{len(engine)} containers compared, {wrong} values disagree")
    sys.exit(1 if wrong or not engine else 0)


if __name__ == "__main__":
    main()
