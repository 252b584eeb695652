"""What goes wrong while a job moves between nodes, tried on real Swarm nodes: `make faults`.

    python tests/cluster/faults.py [WORD...]

Needs the nodes in CLUSTER_HOSTS (tests/cluster/nodes run). A job on node2, a container or a Swarm
service, is ordered to node3; something breaks at a step of the move; it is repaired, and dl-apply
runs again. Then the job must run once, go on from its checkpoint, and have trained each epoch once.
WORDs choose cases whose names hold one of them. Prints a table, and fails if a job is lost, doubled
or damaged.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from fault_cases import CASES, Case
from helpers.cluster_nodes import Node, remove_services
from helpers.containers import eventually
from helpers.moves import order
from helpers.tools import command, environment, records

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Plan
from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.parts import part
from dltools.engine.registry import host_address
from dltools.engine.services import Services

NO_PLAN = dump_plan(Plan("test", "", {}, {}, None, ())).encode()

TRAINING = """trap 'exit 0' TERM
me=$(busybox hostname)
echo $me > /ckpt/owner
n=$(cat /ckpt/model 2>/dev/null || echo 0)
while :; do
    [ "$(cat /ckpt/owner)" = "$me" ] || echo $me >> /ckpt/doubled
    echo $((n + 1)) > /ckpt/part && busybox mv /ckpt/part /ckpt/model &&
        n=$((n + 1)) && echo $n >> /ckpt/trace
    sleep 0.2 & wait $!
done"""
"""Counts epochs, goes on from its checkpoint, and notices another one that does so too."""

FAULTY = """
import os, signal, subprocess, sys
from dltools.apply.migrate.migration import MigrationFiles, Step
import dltools.apply.migrate.service_steps as steps
import dltools.engine.docker.http as transport
transport.TIMEOUT_S, steps.START_S, steps.PENDING_S = 3, 8, 3
step, before, fault = Step(sys.argv.pop(1)), sys.argv.pop(1) == "before", sys.argv.pop(1)
write, done = MigrationFiles.write, []
def breaks():
    if not done:
        done.append(1)
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        subprocess.run(fault, shell=True, check=True)
def written(self, migration):
    if migration.step is step and before:
        breaks()
    write(self, migration)
    if migration.step is step:
        breaks()
MigrationFiles.write = written
sys.argv[0] = "dl-apply"
from dltools.cli.apply import main
main()
"""
"""dl-apply, impatient, which does something just before or after it notes that it begins a step."""


@dataclass
class Tally:
    cases: int = 0
    moved: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


class Job:
    """The job of a case: a container with a restart policy, or a service."""

    def __init__(self, nodes: list[Node], folder: Path, *, is_service: bool) -> None:
        self.folder = folder
        self._nodes = nodes
        self._is_service = is_service
        if is_service:
            mount = f"--mount=type=bind,source={folder},target=/ckpt"
            placed = "--stop-grace-period=5s --constraint=node.hostname==node2"
            label = "--container-label=dltools.checkpoint=/ckpt/model"
            nodes[0].create_service(f"--name=job {mount} {placed} {label}", TRAINING)
        else:
            nodes[1].train("job", str(folder), "--restart=always", script=TRAINING)
        eventually(lambda: len(self.trace()) > 2)
        if is_service:
            swarm = part(DockerEngine(connect(host_address(nodes[0].url))), Services)
            assert swarm is not None
            swarm.change("job", constraints=[])
        self.id = nodes[1]("ps", "-q", "--no-trunc")

    def trace(self) -> list[int]:
        path = self.folder / "trace"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def where(self) -> list[str]:
        return [node.name for node in self._nodes for _ in node("ps", "-q").split()]

    def goes_on(self) -> bool:
        seen = len(self.trace())
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if len(self.trace()) > seen + 2 and len(self.where()) == 1:
                return True
            time.sleep(0.2)
        return False

    def is_doubled(self) -> bool:
        """Whether two have run at once, or are left."""
        trace = self.trace()
        left = [name for node in self._nodes for name in node.names()]
        is_left = len(left) > 1 and not self._is_service
        return (self.folder / "doubled").exists() or len(set(trace)) < len(trace) or is_left

    def is_damaged(self) -> bool:
        """Whether its checkpoint is not the one of its last epoch, or epochs are missing."""
        trace = [0, *self.trace()]
        try:
            model = int((self.folder / "model").read_text())
        except ValueError:
            return True
        # An epoch is missing where the job was stopped between its checkpoint and its note of it.
        has_gap = any(after - before not in (1, 2) for before, after in pairwise(trace))
        return has_gap or model - trace[-1] not in (0, 1, 2)


def main() -> int:
    urls = os.environ.get("CLUSTER_HOSTS", "").split()
    if len(urls) != 3:
        print("faults: no cluster of three nodes: run make faults", file=sys.stderr)
        return 69
    nodes = [Node(number, url) for number, url in enumerate(urls, 1)]
    words = sys.argv[1:]
    tallies: dict[str, Tally] = {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for case in CASES:
            if not words or any(word in case.name for word in words):
                _try(case, nodes, tallies.setdefault(case.fault, Tally()))
    except KeyboardInterrupt:
        print("interrupted: the table has what was tried by then", file=sys.stderr)
    print(_table(tallies))
    bad = [
        line for tally in tallies.values() for line in (*tally.lost, *tally.doubled, *tally.damaged)
    ]
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


def _try(case: Case, nodes: list[Node], tally: Tally) -> None:
    begun = time.monotonic()
    with _empty(nodes), tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (work / "ckpt").mkdir()
        if case.is_small:
            _mount_small(work / "ckpt")
        job = Job(nodes, work / "ckpt", is_service=case.is_service)
        try:
            ended = _broken_move(case, nodes, job, work)
        finally:
            _repair(case.commands(work / "ckpt")[1], nodes)
        statuses = _settle(nodes, work)
        is_lost = not job.goes_on()
        where = job.where()
        tally.cases += 1
        tally.moved += where == ["node3"]
        said = f"{case.name}: on {', '.join(where) or 'no node'}; {ended}, then {statuses}"
        if is_lost:
            tally.lost.append(f"lost: {said}")
        if job.is_doubled():
            tally.doubled.append(f"doubled: {said}")
        if job.is_damaged():
            tally.damaged.append(f"damaged: {said}: {job.trace()[-5:]}")
        print(f"{time.monotonic() - begun:5.1f} s  {said}", file=sys.stderr, flush=True)
        if case.is_small:
            subprocess.run(["umount", "-l", str(work / "ckpt")], check=True)


def _mount_small(folder: Path) -> None:
    """Put a folder on a disk of 64 KiB."""
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    subprocess.run(words, check=True)


def _broken_move(case: Case, nodes: list[Node], job: Job, work: Path) -> str:
    """Order the move, let it break, and return what dl-apply said, or how it ended."""
    moment = "before" if case.before else "after"
    words = [sys.executable, "-c", FAULTY, case.step.value, moment, case.commands(work / "ckpt")[0]]
    hosts = [f"--host={nodes[0].url}", "--swarm"]
    done = subprocess.run(
        [*words, *hosts, f"--state-dir={work}/state"],
        input=order(nodes[1], nodes[2], job.id),
        capture_output=True,
        env=environment(),
        timeout=300,
    )
    if b"Traceback" in done.stderr:
        raise AssertionError(f"{case.name}: {done.stderr.decode()}")
    results = records(done.stdout) if done.stdout else []
    return "; ".join(f"{one['status']} ({one['error']})" for one in results) or str(done.returncode)


def _repair(words: str, nodes: list[Node]) -> None:
    """Repair what was broken, and wait until all nodes are ready."""
    if words:
        subprocess.run(words, shell=True, check=True)

    def ready() -> bool:
        listed = nodes[0]("node", "ls", "--format={{.Status}}", check=False)
        return listed.split().count("Ready") == len(nodes)

    eventually(lambda: all(node("info", check=False) for node in nodes))
    eventually(ready)


def _settle(nodes: list[Node], work: Path) -> list[str]:
    """Run dl-apply again until nothing is left half-way; return what it said."""
    said: list[str] = []
    words = (f"--host={nodes[0].url}", "--swarm", f"--state-dir={work}/state")
    for _ in range(5):
        done = subprocess.run(
            command("dl-apply", *words),
            input=NO_PLAN,
            capture_output=True,
            env=environment(),
            timeout=300,
        )
        said += [one["status"] for one in records(done.stdout)] if done.stdout else []
        shown = subprocess.run(
            command("dl-apply", *words, "--status", "--format", "jsonl"),
            capture_output=True,
            env=environment(),
            timeout=300,
        )
        if done.returncode > 1 or shown.returncode:
            said.append((done.stderr + shown.stderr).decode().strip())
        elif b'"migration"' not in shown.stdout:
            break
    return said


@contextmanager
def _empty(nodes: list[Node]) -> Iterator[None]:
    """Give the nodes without containers and services, and leave them so."""
    _clear(nodes)
    try:
        yield
    finally:
        _clear(nodes)


def _clear(nodes: list[Node]) -> None:
    remove_services(nodes)
    for node in nodes:
        node.clean()
    eventually(lambda: not any(node("ps -aq") for node in nodes))


def _table(tallies: dict[str, Tally]) -> str:
    rows = [("fault", "cases", "moved", "stayed", "lost", "doubled", "damaged")]
    whole = Tally()
    for fault, one in tallies.items():
        rows.append((fault, *_counts(one)))
        whole.cases += one.cases
        whole.moved += one.moved
        for name in ("lost", "doubled", "damaged"):
            getattr(whole, name).extend(getattr(one, name))
    rows.append(("all", *_counts(whole)))
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * 7, *lines[1:]])


def _counts(one: Tally) -> tuple[str, ...]:
    counts = (
        one.cases,
        one.moved,
        one.cases - one.moved,
        len(one.lost),
        len(one.doubled),
        len(one.damaged),
    )
    return tuple(map(str, counts))


if __name__ == "__main__":
    sys.exit(main())
