"""Deliveries: once for each container and target, tried again until they are done."""

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_engine import HOST, ID, NAME, FakeEngine, action, plan_of
from helpers.tar_archives import archive

from dltools.apply.deliver.deliverer import Deliverer
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

    def begin(self, *, dry_run: bool = False) -> EngineActuator:
        files = DeliveryFiles(self.home / "deliveries")
        deliverer = Deliverer(self.engine, files, self.models, lambda: self.now)
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
