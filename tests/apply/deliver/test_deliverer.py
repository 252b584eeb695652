"""Deliveries: once for each container and target, tried again until they are done.

Hooks: commands without a shell, with a limit of time.
"""

import hashlib
import json
import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import eventually
from helpers.fake_engine import HOST, ID, NAME, FakeEngine, action, plan_of
from helpers.tar_archives import archive

from dltools.apply.deliver.deliverer import CHECK_S, Deliverer, Hook
from dltools.apply.deliver.delivery import DeliveryFiles
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.turns import Rotation
from dltools.engine.interface import Engine
from dltools.engine.journal import Journal
from dltools.errors import DataError
from dltools.plan.records import Op, Result
from dltools.plan.signals.targets import TargetMet

MODEL = b"weights" * 1000
MET = TargetMet("val_loss", "min", 0.5, 0.48, "2026-01-31T12:00:00.000000Z")
ORDER = action({}, Op.DELIVER, met=MET, id=7)
NAMED = f"{NAME}-{ID[:12]}-val_loss-0.5"


class Runs:
    """Runs of dl-apply, one after the other, over one state."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine, self.home, self.now = engine, home, 0.0
        self.models = home / "models"
        self.delivered = self.models / NAMED

    def begin(self, hook: Hook | None = None, *, dry_run: bool = False) -> EngineActuator:
        files = DeliveryFiles(self.home / "deliveries")
        deliverer = Deliverer(self.engine, files, self.models, hook, lambda: self.now)
        return EngineActuator(
            self.engine,
            Journal(self.home / "journal"),
            Rotation(self.engine, self.home / "rotation"),
            deliverer=deliverer,
            dry_run=dry_run,
        )


@pytest.fixture
def runs(engine: Engine, fake_engine: FakeEngine, tmp_path: Path) -> Runs:
    fake_engine.labels = {"dltools.checkpoint": "/ckpt/model.pt"}
    fake_engine.archive = archive({"model.pt": MODEL})
    return Runs(engine, tmp_path)


def statuses(results: list[Result]) -> list[tuple[str, str | None]]:
    return [(result.status.value, result.error) for result in results]


def retried(actuator: EngineActuator) -> list[tuple[str, str | None]]:
    assert actuator.deliverer is not None
    return statuses(actuator.deliverer.retry(lambda _: None))


def counting(path: Path, code: int = 0) -> Hook:
    """A hook that writes a line for each time that it is run."""
    return Hook(("sh", "-c", f'echo "$1" >> {path}; exit {code}', "hook"), 60, patience_s=60)


def waiting(go: Path, limit_s: float = 60) -> Hook:
    """A hook that ends when a line is written into a FIFO."""
    if not go.exists():
        os.mkfifo(go)
    return Hook(("sh", "-c", f"read line < {go}"), limit_s, patience_s=0)


def ended(actuator: EngineActuator) -> list[tuple[str, str | None]]:
    """Wait for the hooks that run, and return the results."""
    assert actuator.deliverer is not None
    return statuses(actuator.deliverer.finish(lambda _: None))


def test_a_model_is_delivered_with_a_manifest(runs) -> None:
    (result,) = runs.begin().apply(plan_of(ORDER))
    sha256 = hashlib.sha256(MODEL).hexdigest()
    said = {"delivered": str(runs.delivered), "size": len(MODEL), "sha256": sha256}
    assert (result.id, result.status, result.after) == (7, "applied", said)
    assert (runs.delivered / "checkpoint" / "model.pt").read_bytes() == MODEL
    manifest = json.loads((runs.delivered / "manifest.json").read_text())
    expected = {
        "container": {"id": ID, "name": NAME},
        "host": HOST,
        "metric": "val_loss",
        "target": 0.5,
        "value": 0.48,
        "time": MET.time,
        "objective": "min",
        "checkpoint": "/ckpt/model.pt",
        "size": len(MODEL),
        "sha256": sha256,
    }
    assert manifest.items() >= expected.items()


def test_each_target_of_a_container_is_delivered_once(runs) -> None:
    final = replace(ORDER, met=replace(MET, target=0.2, value=0.1), id=8)
    runs.begin().apply(plan_of(ORDER))
    results = runs.begin().apply(plan_of(ORDER, final, ORDER))  # the pipe was started again
    assert [result.status.value for result in results] == ["unchanged", "applied", "unchanged"]
    assert len(list(runs.models.iterdir())) == 2


def test_a_job_that_has_moved_is_not_delivered_again(runs, fake_engine) -> None:
    first = "1" * 64
    runs.begin().apply(plan_of(ORDER))
    (record,) = (runs.home / "deliveries").iterdir()
    record.rename(record.with_name(record.name.replace(ID, first)))  # as on its first host
    fake_engine.labels["dltools.origin"] = first
    (result,) = runs.begin().apply(plan_of(ORDER))
    assert result.status == "unchanged"


def test_a_dry_run_delivers_nothing(runs) -> None:
    (result,) = runs.begin(dry_run=True).apply(plan_of(ORDER))
    assert (result.status, result.after) == ("planned", {"delivered": str(runs.delivered)})
    assert not runs.models.exists()


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({}, "it has no label dltools.checkpoint that says where its model is"),
        ({"dltools.checkpoint": " "}, "it has no label dltools.checkpoint that says where"),
        ({"dltools.checkpoint": "/m", "dltools.protect": "1"}, "protected by its label"),
    ],
)
def test_why_nothing_is_delivered(runs, fake_engine, labels, why) -> None:
    fake_engine.labels = labels
    actuator = runs.begin()
    (result,) = actuator.apply(plan_of(ORDER))
    assert result.status == "skipped" and (result.error or "").startswith(why)
    assert retried(actuator) == []


def break_archive(fake: FakeEngine) -> str:
    fake.archive = (fake.archive or b"")[:4000]
    return "not delivered: the engine's archive cannot be read: unexpected end of data; "


def remove_checkpoint(fake: FakeEngine) -> str:
    fake.archive = None
    return f"not delivered: Could not find the file in container {ID}; "


def hang_up(fake: FakeEngine) -> str:
    fake.faults["GET /archive"] = 0
    return f"not delivered: no Docker engine answers at {fake.url}"


@pytest.mark.parametrize("fault", [break_archive, remove_checkpoint, hang_up])
def test_what_has_failed_is_tried_again_ever_more_slowly(runs, fake_engine, fault) -> None:
    whole = fake_engine.archive
    why = fault(fake_engine)
    actuator = runs.begin()
    (result,) = actuator.apply(plan_of(ORDER))
    assert result.status == "failed" and (result.error or "").startswith(why)
    assert (result.error or "").endswith("it is tried again")
    assert not list(runs.models.iterdir()) if runs.models.exists() else True
    assert actuator.deliverer and actuator.deliverer.seconds_until_due() == 10
    assert retried(actuator) == []
    runs.now = 10
    assert [status for status, _ in retried(actuator)] == ["failed"]
    assert actuator.deliverer.seconds_until_due() == 20
    fake_engine.archive, fake_engine.faults = whole, {}
    runs.now = 30
    assert retried(actuator) == [("applied", None)]
    assert actuator.deliverer.seconds_until_due() is None


def test_the_next_run_goes_on_with_what_was_left(runs, fake_engine) -> None:
    whole, fake_engine.archive = fake_engine.archive, None
    runs.begin().apply(plan_of(ORDER))
    fake_engine.archive = whole
    assert retried(runs.begin()) == [("applied", None)]
    assert retried(runs.begin()) == []


def test_a_hook_that_fails_is_a_result_and_runs_again_without_another_copy(
    runs, fake_engine, tmp_path
) -> None:
    said = tmp_path / "said"
    (result,) = runs.begin(counting(said, 3)).apply(plan_of(ORDER))
    assert (result.status, result.error) == (
        "failed",
        "delivered, but the hook sh failed with exit status 3; it is tried again",
    )
    assert result.after["delivered"] == str(runs.delivered)
    fake_engine.archive = None
    assert retried(runs.begin(counting(said))) == [("applied", None)]
    assert retried(runs.begin(counting(said))) == []
    assert said.read_text() == f"{runs.delivered}\n" * 2


def test_a_hook_that_takes_long_holds_up_nothing(runs, tmp_path) -> None:
    actuator = runs.begin(waiting(tmp_path / "go"))
    assert actuator.deliverer is not None
    (result,) = actuator.apply(plan_of(ORDER))
    assert (result.status, result.after["hook"]) == ("applied", "running")
    (again,) = actuator.apply(plan_of(ORDER))
    assert (again.status, again.after["hook"]) == ("unchanged", "running")
    assert retried(actuator) == []
    assert actuator.deliverer.seconds_until_due() == CHECK_S
    (tmp_path / "go").write_text("\n")
    (result,) = actuator.deliverer.finish(lambda _: None)
    assert (result.id, result.status, result.error) == (7, "applied", None)
    assert "hook" not in result.after
    assert actuator.deliverer.seconds_until_due() is None
    (result,) = runs.begin(waiting(tmp_path / "go")).apply(plan_of(ORDER))
    assert result.status == "unchanged" and "hook" not in result.after


def test_a_hook_that_hangs_is_a_result_and_is_tried_again(runs) -> None:
    actuator = runs.begin(Hook(("sh", "-c", "sleep 600"), 0.2, patience_s=0))
    why = "delivered, but the hook sh was killed: it took more than 0.2 s; it is tried again"
    actuator.apply(plan_of(ORDER))
    assert ended(actuator) == [("failed", why)]
    assert retried(actuator) == []
    runs.now = 10
    assert retried(actuator) == []  # it runs
    assert ended(actuator) == [("failed", why)]
    runs.now = 29
    assert retried(actuator) == []
    assert actuator.deliverer and actuator.deliverer.seconds_until_due() == 1


def test_a_hook_that_is_stopped_begins_again_in_the_next_run(runs, tmp_path) -> None:
    said = tmp_path / "said"
    actuator = runs.begin(waiting(tmp_path / "go"))
    actuator.apply(plan_of(ORDER))
    assert actuator.deliverer is not None
    actuator.deliverer.stop()
    assert ended(actuator) == []
    assert retried(runs.begin(counting(said))) == [("applied", None)]
    assert said.read_text() == f"{runs.delivered}\n"


def test_a_copy_that_a_killed_run_had_finished_is_not_made_again(runs, fake_engine) -> None:
    runs.begin().apply(plan_of(ORDER))
    (record,) = (runs.home / "deliveries").iterdir()
    left = json.loads(record.read_text()) | {"step": "ordered", "folder": ""}
    record.write_text(json.dumps(left))  # killed between the copy and the note of it
    half = runs.models / f".{NAMED}.1234"
    half.mkdir()
    fake_engine.archive = archive({"model.pt": b"of a later epoch"})
    assert retried(runs.begin()) == [("applied", None)]
    assert not half.exists()
    assert (runs.delivered / "checkpoint" / "model.pt").read_bytes() == MODEL


def test_a_model_whose_container_is_gone_is_lost_and_said_so_once(runs, fake_engine) -> None:
    fake_engine.archive = None
    runs.begin().apply(plan_of(ORDER))
    fake_engine.is_there = False
    actuator = runs.begin()
    assert retried(actuator) == [("failed", "not delivered: the container no longer exists")]
    assert retried(actuator) == retried(runs.begin()) == []


def test_records_are_forgotten_after_ninety_days(runs, monkeypatch) -> None:
    runs.begin().apply(plan_of(ORDER))
    began = time.time()
    monkeypatch.setattr("dltools.apply.deliver.deliverer.time.time", lambda: began + 89 * 86400)
    runs.begin()
    assert len(list((runs.home / "deliveries").iterdir())) == 1
    monkeypatch.setattr("dltools.apply.deliver.deliverer.time.time", lambda: began + 91 * 86400)
    runs.begin()
    assert not list((runs.home / "deliveries").iterdir())


def test_a_full_disk_leaves_nothing_behind(runs, monkeypatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dltools.apply.deliver.copying.sync_folder", full)
    (result,) = runs.begin().apply(plan_of(ORDER))
    assert result.error == "not delivered: No space left on device; it is tried again"
    assert not list(runs.models.iterdir())


@pytest.mark.parametrize("damage", ["", '"metric": "\\ud800'], ids=["cut off", "no text"])
def test_a_damaged_record_is_named(runs, damage) -> None:
    runs.begin().apply(plan_of(ORDER))
    (record,) = (runs.home / "deliveries").iterdir()
    record.write_text(record.read_text().replace('"metric": "' if damage else "}", damage))
    with pytest.raises(DataError, match=f"^{record}: damaged record of a delivery: "):
        runs.begin()


def script(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def run(command: tuple[str, ...], limit_s: float = 60, path: Path = Path("/x")) -> str | None:
    hook = Hook(command, limit_s).begin(path)
    assert hook.is_over(math.inf)
    return hook.failure


def test_the_path_is_the_last_argument_and_no_shell_reads_it(tmp_path) -> None:
    path = tmp_path / "$HOME; x"
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    assert run((*script(code), str(tmp_path / "said")), path=path) is None
    assert (tmp_path / "said").read_text() == str(path)


def test_what_it_prints_is_no_result(capfd) -> None:
    run(script("print('sent')"))
    assert capfd.readouterr() == ("", "sent\n")


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (script("exit(3)"), f"the hook {sys.executable} failed with exit status 3"),
        (
            script("import os; os.kill(os.getpid(), 9)"),
            f"the hook {sys.executable} was killed by signal 9",
        ),
        (("/no/such/hook",), "the hook /no/such/hook cannot be run: No such file or directory"),
        (("/etc/passwd",), "the hook /etc/passwd cannot be run: Permission denied"),
    ],
)
def test_a_failure_is_told(hook, why) -> None:
    assert run(hook) == why


@pytest.mark.slow
def test_a_hook_that_hangs_is_killed_with_all_that_it_has_started(tmp_path) -> None:
    said = tmp_path / "pid"
    code = (
        "import subprocess, time; p = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(said)!r}, 'w').write(str(p.pid)); time.sleep(600)"
    )
    begun = time.monotonic()
    assert run(script(code), 3) == f"the hook {sys.executable} was killed: it took more than 3 s"
    assert time.monotonic() - begun < 60
    child = int(said.read_text())
    eventually(lambda: not is_running(child), seconds=30)


def test_nobody_has_to_wait_for_a_hook(tmp_path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    hook = Hook(("sh", "-c", f"read line < {go}; exit 4"), 60).begin(Path("/x"))
    assert not hook.is_over()
    assert not hook.is_over(0.05)
    go.write_text("go\n")
    assert hook.is_over(60)
    assert hook.is_over()
    assert hook.failure == "the hook sh failed with exit status 4"


def test_a_hook_is_killed_when_nobody_is_to_hear_of_it() -> None:
    hook = Hook(("sleep", "600"), 600).begin(Path("600"))
    hook.kill()
    assert (hook.is_over(), hook.failure) == (True, None)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return " Z " not in Path(f"/proc/{pid}/stat").read_text()
