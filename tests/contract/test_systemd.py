"""What only systemd has: it writes its own settings into cgroups again, beside dltools."""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from contract.bare_cgroups import CGROUPS
from contract.conftest import SPIN, TRAINING
from contract.plans import turns, update
from contract.subject import MEANT, Traits
from helpers.containers import PATIENCE, eventually
from helpers.pipes import give
from helpers.tools import Tools, records

from dltools.engine.address import Address
from dltools.engine.interface import Capabilities, Engine
from dltools.engine.registry import open_engine

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif("systemd" not in MEANT, reason="DLTOOLS_CONTRACT names no systemd"),
]

IS_V2 = (CGROUPS / "cgroup.controllers").exists()
FILES = ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.weight", "cpu.max")
PROPERTIES = ("CPUAccounting=yes", "CPUWeight=50", "MemoryAccounting=yes")
"""Without them a unit has no cgroup of these controllers."""
LIMITED = (*PROPERTIES, "CPUQuota=80%")
REWRITES = ("daemon-reload", "daemon-reexec", "set-property --runtime {} TasksMax=500")
"""What makes systemd write the settings of a unit again."""


@dataclass
class Unit:
    id: str
    name: str
    unit: str
    folder: Path
    freezer: Path

    def kernel(self) -> dict[str, str]:
        found = ((name, self.folder / name) for name in FILES)
        return {name: path.read_text().strip() for name, path in found if path.exists()}

    def record(self) -> dict[str, object]:
        return {}

    @property
    def is_frozen(self) -> bool:
        return "frozen 1" in (self.freezer / "cgroup.events").read_text()


@dataclass
class Systemd:
    """The units of one test, in a slice of their own."""

    top: str
    folder: Path
    slice: str
    engine: Engine
    url: str
    name: str = "systemd"
    traits: Traits = Traits(Capabilities(creates=False))  # noqa: RUF009  # it is frozen
    only: tuple[str, ...] = ()
    units: list[str] = field(default_factory=list)

    def start(self, kind: str, script: str, *properties: str) -> Unit:
        """Start a shell script as a scope or as a service."""
        unit = f"{self.slice.removesuffix('.slice')}{len(self.units)}.{kind}"
        self.units.append(unit)
        words = ["-q", f"--slice={self.slice}", f"--unit={unit}"]
        words += [f"--property={one}" for one in (properties or PROPERTIES)]
        log, shell = self.folder / unit, ["/bin/busybox", "sh", "-c", script]
        if kind == "scope":
            with log.open("wb") as file:
                subprocess.Popen(
                    ["systemd-run", "--scope", *words, *shell],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
        else:
            output = f"--property=StandardOutput=append:{log}"
            subprocess.run(["systemd-run", *words, output, *shell], check=True)
        path = f"{self.top}/{self.slice}/{unit}"
        eventually(lambda: _command_in(self._place("cpu", path)) == "busybox")
        id_ = self.engine.inspect(path.lstrip("/")).id
        return Unit(
            id_, path.lstrip("/"), unit, self._place("cpu", path), self._place("unified", path)
        )

    def write_again(self, how: str, unit: Unit) -> None:
        subprocess.run(
            ["systemctl", *how.format(unit.unit).split()], check=True, timeout=60 * PATIENCE
        )

    def _place(self, hierarchy: str, path: str) -> Path:
        return CGROUPS / ("" if IS_V2 else hierarchy) / path.lstrip("/")


def _command_in(folder: Path) -> str:
    with suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


@pytest.fixture
def subject() -> Iterator[Systemd]:
    if shutil.which("systemd-run") is None:
        pytest.fail("DLTOOLS_CONTRACT names systemd, and there is no systemd-run", pytrace=False)
    top, slice_ = os.environ.get("SYSTEMD_CGROUP", ""), f"test{uuid.uuid4().hex[:8]}.slice"
    url = f"cgroup:{top}/{slice_}/*.scope,{top}/{slice_}/*.service"
    with tempfile.TemporaryDirectory(dir=os.environ.get("SYSTEMD_FOLDER")) as folder:
        engine = open_engine(Address(url, "--host"))
        made = Systemd(top, Path(folder), slice_, engine, url)
        try:
            yield made
        finally:
            for unit in made.units:  # a frozen one would not end
                words = ["systemctl", "kill", "--signal=KILL", unit]
                subprocess.run(words, capture_output=True, check=False, timeout=60 * PATIENCE)
            words = ["systemctl", "stop", *made.units, slice_]
            subprocess.run(words, capture_output=True, check=False, timeout=120 * PATIENCE)


@pytest.fixture(params=["scope", "service"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def unit(subject: Systemd, kind: str) -> Unit:
    return subject.start(kind, "while :; do sleep 1; done", *LIMITED)


def changed(subject: Systemd, tool: Tools, unit: Unit, **wanted: float) -> str:
    plans = update(subject, unit, **wanted)
    (result,) = records(tool("dl-apply", "--host", subject.url, input=plans).stdout)
    return f"{result['status']} {result['error'] or ''}".strip()


def undone(subject: Systemd, tool: Tools) -> list[str]:
    done = tool("dl-apply", "--host", subject.url, "--undo")
    return [one["status"] for one in records(done.stdout)]


def test_a_unit_is_measured(subject, tool, kind) -> None:
    unit = subject.start(kind, TRAINING, *LIMITED)
    done = eventually(
        lambda: tool("dl-probe", "--host", subject.url, "--format", "jsonl"),
        lambda done: b'"progress"' in done.stdout,
    )
    (row,) = [one for one in records(done.stdout) if one["kind"] == "container"]
    assert (row["container_name"], row["cpu_limit_cores"], row["cpu_weight"]) == (
        unit.name,
        0.8,
        512,
    )
    assert row["cpu_seconds"] > 0
    assert row["memory_usage_bytes"] > 0
    assert row.get("gap") is None


@pytest.mark.parametrize("how", REWRITES)
def test_what_systemd_writes_again_is_nobodys_change(subject, tool, unit, how, state) -> None:
    kernel = unit.kernel()
    for weight in (300, 400, 500, 600, 700):  # more changes than are known again
        assert changed(subject, tool, unit, cpus=0.4, weight=weight) == "applied"
    subject.write_again(how, unit)
    assert eventually(unit.kernel, lambda found: found == kernel) == kernel
    assert changed(subject, tool, unit, weight=300) == "applied"
    subject.write_again(how, unit)
    eventually(unit.kernel, lambda found: found == kernel)
    assert changed(subject, tool, unit, cpus=0.4) == "applied"
    assert undone(subject, tool) == ["applied"]
    assert unit.kernel() == kernel
    assert list((state / "journal").glob("*")) == []


def test_after_systemd_has_written_its_own_nothing_is_left_to_undo(
    subject, tool, unit, state
) -> None:
    kernel = unit.kernel()
    assert changed(subject, tool, unit, cpus=0.4, weight=300) == "applied"
    subject.write_again("daemon-reload", unit)
    eventually(unit.kernel, lambda found: found == kernel)
    assert undone(subject, tool) == ["unchanged"]
    assert unit.kernel() == kernel
    assert list((state / "journal").glob("*")) == []


def test_a_property_that_an_administrator_sets_is_left_alone(subject, tool, unit) -> None:
    assert changed(subject, tool, unit, weight=300) == "applied"
    before = unit.kernel()
    subject.write_again("set-property --runtime {} CPUWeight=60", unit)
    theirs = eventually(unit.kernel, lambda found: found != before)
    assert "somebody else" in changed(subject, tool, unit, weight=400)
    assert undone(subject, tool) == ["skipped"]
    assert unit.kernel() == theirs


def test_limits_end_with_the_controller_that_a_unit_had_by_another_one(
    subject, tool, kind, state
) -> None:
    beside = subject.start("service", "while :; do sleep 1; done")
    unit = subject.start(kind, "while :; do sleep 1; done", "TasksMax=500")
    assert changed(subject, tool, unit, cpus=0.4, weight=300) == "applied"
    subject.write_again("stop " + beside.unit, unit)
    subject.write_again("daemon-reload", unit)
    eventually(lambda: unit.kernel() == {})
    assert "applied" not in changed(subject, tool, unit, weight=400)
    assert tool("dl-apply", "--host", subject.url, "--undo").returncode == 0
    assert list((state / "journal").glob("*")) == []


def test_a_stream_sets_again_what_systemd_took_back(subject, tool, tmp_path) -> None:
    script = f"({SPIN}) & ({SPIN}) & {TRAINING}"
    units = [subject.start("scope", script), subject.start("service", script)]
    kernel = [unit.kernel() for unit in units]
    host = f"--host {subject.url}"
    line = f"dl-probe {host} -i 1 | dl-plan -p fair --realize quota | dl-apply {host} >/dev/null"
    pipe = tool.begin_shell(line, tmp_path / "bin")

    def are_changed() -> bool:
        return all(one.kernel() != was for one, was in zip(units, kernel, strict=True))

    eventually(are_changed)
    for _ in range(3):
        subject.write_again("daemon-reload", units[0])
        eventually(are_changed)
    os.killpg(pipe.pid, signal.SIGINT)
    pipe.communicate(timeout=120 * PATIENCE)
    undone(subject, tool)
    assert [unit.kernel() for unit in units] == kernel


def test_turns_go_on_and_nothing_stays_frozen(subject, tool) -> None:
    units = [subject.start(kind, TRAINING) for kind in ("scope", "service")]
    process = tool.begin("dl-apply", "--host", subject.url)
    give(process, turns(subject, *units))
    for unit in (*units, *units):
        eventually(lambda unit=unit: unit.is_frozen)
        subject.write_again("daemon-reload", unit)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120 * PATIENCE)
    assert [unit.is_frozen for unit in units] == [False, False]
