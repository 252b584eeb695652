"""What dl-probe needs: cgroup files, and an engine that can only be asked. No root, no group."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import Containers, Job, eventually, plan_for, socket_path
from helpers.engine_relay import EngineRelay
from helpers.other_users import STRANGER, needs_root, tool_as
from helpers.tools import command, environment, records

from dltools.actions.plans import Op
from dltools.cli.exits import Exit

SAMPLES = Path(__file__).parents[2] / "samples"
TRAINING = "i=0; while :; do i=$((i+1)); echo step $i loss: 0.5; usleep 200000; done"
Rows = list[dict[str, Any]]


@pytest.fixture
def asked_only() -> Iterator[EngineRelay]:
    # Not in tmp_path, which pytest keeps from the other user.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "asked-only.sock"
        with EngineRelay(socket_path(), path, is_asked_only=True) as proxy:
            yield proxy
    assert proxy.changes == []


@pytest.fixture
def probed(run: Containers, asked_only: EngineRelay) -> Callable[..., Rows]:
    """Probe the test's containers as another user, by the socket that can only be asked."""

    def probe(*arguments: object) -> Rows:
        env = {"DOCKER_HOST": asked_only.url}
        done = tool_as(STRANGER, "dl-probe", *run.only, "--format", "jsonl", *arguments, env=env)
        assert (done.returncode, done.stderr) == (0, b"")
        return [json.loads(line) for line in done.stdout.splitlines()]

    return probe


def of_kind(rows: Rows, kind: str) -> Rows:
    return [row for row in rows if row["kind"] == kind]


@needs_root
def test_counters_limits_logs_and_events_need_no_more(run, probed) -> None:
    job = run(TRAINING, nano_cpus=1_500_000_000, cpu_shares=512)
    rows = eventually(probed, lambda found: len(of_kind(found, "progress")) > 2)
    (container,) = of_kind(rows, "container")
    assert (container["cpu_limit_cores"], container["cpu_weight"]) == (1.5, job.kernel_weight)
    assert 0 < container["cpu_seconds"] <= job.cpu_seconds
    assert container["memory_usage_bytes"] > 0
    (host,) = of_kind(rows, "node")
    assert host["cpu_seconds"] > 0
    assert [row["event"] for row in of_kind(rows, "event")] == ["start"]


@needs_root
def test_a_stream_needs_no_more(run, probed) -> None:
    run(TRAINING)
    rows = probed("-i", "1", "-c", "4")
    steps = [row["step"] for row in of_kind(rows, "progress")]
    assert steps == list(range(steps[0], steps[-1] + 1))
    used = [row["cpu_seconds"] for row in of_kind(rows, "container")]
    assert used == sorted(used)
    assert len(used) == 4


@needs_root
def test_what_needs_more_is_a_gap(run, probed) -> None:
    run(f"mkdir /job; cd /job; printf 'step,loss\\n1,0.5\\n' >metrics.csv; {TRAINING}")
    (container,) = of_kind(probed(), "container")
    assert "files: Permission denied" in container["gap"]
    assert "OpenMP: this user may not read its processes" in container["gap"]


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is missing")
@pytest.mark.usefixtures("state")
def test_the_capabilities_of_the_units_are_enough(run) -> None:
    """Root with these alone, and no way to others: as the units of samples/systemd confine it."""
    unit = (SAMPLES / "systemd" / "dltools-stream.service").read_text()
    (names,) = re.findall("^CapabilityBoundingSet=(.*)$", unit, re.M)
    kept = ",".join(f"+{name.lower().removeprefix('cap_')}" for name in names.split())
    confined = ["setpriv", "--no-new-privs", f"--bounding-set=-all,{kept}", "--inh-caps=-all"]
    job = run(f"mkdir /job; cd /job; printf 'step,loss\\n1,0.5\\n' >metrics.csv; {TRAINING}")
    before = job.kernel()

    def confine(name: str, *arguments: object, input: bytes = b"") -> bytes:
        words = [*confined, *command(name, *arguments)]
        done = subprocess.run(words, input=input, env=environment(), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def probed() -> Rows:
        lines = confine("dl-probe", *run.only, "--format", "jsonl").splitlines()
        return [json.loads(line) for line in lines]

    rows = eventually(probed, lambda found: len({row.get("source") for row in found}) > 2)
    assert {"csv"} < {row.get("source") for row in rows}
    (container,) = of_kind(rows, "container")
    assert not container.get("gap")
    (result,) = records(confine("dl-apply", input=plan_for(job, {"cpus": 0.5})))
    assert (result["status"], job.kernel_cpus) == ("applied", pytest.approx(0.5))
    confine("dl-apply", "--undo")
    assert job.kernel() == before


def test_dl_apply_is_refused_and_says_so(tool, run, asked_only) -> None:
    job: Job = run()
    pause = plan_for(job, {}, op=Op.PAUSE)
    done = tool("dl-apply", input=pause, env={"DOCKER_HOST": asked_only.url})
    assert (done.returncode, done.stderr) == (Exit.PARTIAL, b"")
    (result,) = map(json.loads, done.stdout.splitlines())
    assert (result["status"], result["error"]) == ("failed", "only GET")
    assert job.inspect().state == "running"
    asked_only.changes.clear()
