"""dl-apply with a state directory on a disk that is full, or read-only: nothing is changed that
cannot be put back, and what has been changed is put back."""

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from helpers.containers import eventually
from helpers.fake_engine import FakeEngine, action, plan, plan_of
from helpers.other_users import needs_root
from helpers.pipes import feed, give
from helpers.tools import Tools, complaint, records

from dltools.actions.plan_lines import dump_plan
from dltools.cli.exits import Exit

pytestmark = needs_root
Apply = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    options = "size=64k,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> None:
    with (disk / "filling").open("wb") as file:
        for size in (1 << 12, 1):
            try:
                while True:
                    os.write(file.fileno(), b"x" * size)
            except OSError:
                pass


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def make_writable(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    (disk / "filling").unlink(missing_ok=True)


@pytest.fixture
def apply(tool: Tools, fake_engine: FakeEngine, disk: Path) -> Apply:
    """Run dl-apply with its state on the disk: `apply("--undo")`, `apply(input=...)`."""
    del fake_engine
    return partial(tool, "dl-apply", "--state-dir", disk / "state")


@pytest.mark.parametrize(
    ("spoil", "why"), [(fill, "No space left on device"), (make_read_only, "Read-only file system")]
)
@pytest.mark.parametrize("is_used", [False, True], ids=["new", "used"])
def test_what_cannot_be_noted_is_not_done(apply, fake_engine, disk, spoil, why, is_used) -> None:
    if is_used:
        assert apply(input=plan({"cpus": 1.5})).returncode == 0
        assert apply("--undo").returncode == 0
        fake_engine.updates.clear()
    spoil(disk)
    done = apply(input=plan({"cpus": 1.5}))
    assert done.returncode in (Exit.CANT_CREATE, Exit.IO)
    assert complaint(done.stderr).endswith(why)
    assert fake_engine.updates == []
    make_writable(disk)
    assert apply(input=plan({"cpus": 1.5})).returncode == 0
    assert len(fake_engine.updates) == 1


def test_a_full_disk_does_not_prevent_undo(apply, fake_engine, disk) -> None:
    apply(input=plan({"cpus": 1.5}))
    fill(disk)
    done = apply("--undo")
    assert (done.returncode, done.stderr) == (0, b"")
    assert fake_engine.host_config["CpuQuota"] == -1
    assert apply("--undo").stdout == b""


def test_undo_on_a_read_only_disk_changes_nothing_and_is_retried(apply, fake_engine, disk) -> None:
    apply(input=plan({"cpus": 1.5}))
    make_read_only(disk)
    assert records(apply("--status", "--format", "jsonl").stdout)[0]["found"]["cpus"] is None
    assert records(apply("--undo", "--dry-run").stdout)[0]["status"] == "planned"
    done = apply("--undo")
    assert done.returncode in (Exit.CANT_CREATE, Exit.IO)
    assert complaint(done.stderr).endswith("Read-only file system")
    make_writable(disk)
    assert apply("--undo").returncode == 0
    assert fake_engine.host_config["CpuQuota"] == -1


@pytest.mark.slow
def test_a_stream_whose_disk_fills_ends_and_takes_its_lease_back(tool, fake_engine, disk) -> None:
    process = tool.begin("dl-apply", "--state-dir", disk / "state", "--lease", "600")

    def live(cpus: float) -> bytes:
        return dump_plan(replace(plan_of(action({"cpus": cpus})), is_live=True)).encode()

    assert feed(process, live(1.5))["status"] == "applied"
    fill(disk)
    give(process, live(1.2))
    assert process.wait(60) in (Exit.CANT_CREATE, Exit.IO)
    eventually(lambda: fake_engine.host_config["CpuQuota"] == -1)
    make_writable(disk)
