"""Deliveries: once for each container and target, tried again until they are done."""

import hashlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.fake_engine import ID, NAME, FakeEngine, action, plan_of
from helpers.tar_archives import archive

from dltools.actions.plans import Op, Result
from dltools.apply.delivering import AGAIN_S, Deliverer
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.turns import Rotation
from dltools.engine.interface import Engine
from dltools.engine.journal import Journal
from dltools.observations.targets import TargetMet

MODEL = archive({"model.pt": b"weights" * 1000})
MET = TargetMet("val_loss", "min", 0.5, 0.48, "2026-01-31T12:00:00.000000Z")
ORDER = action({}, Op.DELIVER, met=MET, id=7)
NAMED = f"{NAME}-{ID[:12]}-val_loss-0.5.tar"


class Runs:
    """Runs of dl-apply, one after the other, into one folder."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine, self.home, self.now = engine, home, 0.0
        self.models = home / "models"
        self.delivered = self.models / NAMED

    def begin(self, *, dry_run: bool = False) -> EngineActuator:
        return EngineActuator(
            self.engine,
            Journal(self.home / "journal"),
            Rotation(self.engine, self.home / "rotation"),
            deliverer=Deliverer(self.engine, self.models, lambda: self.now),
            dry_run=dry_run,
        )


@pytest.fixture
def runs(engine: Engine, fake_engine: FakeEngine, tmp_path: Path) -> Runs:
    fake_engine.labels = {"dltools.checkpoint": "/ckpt/model.pt"}
    fake_engine.archive = MODEL
    return Runs(engine, tmp_path)


def retried(actuator: EngineActuator) -> list[tuple[str, str | None]]:
    assert actuator.deliverer is not None
    found: list[Result] = actuator.deliverer.retry(lambda _: None)
    return [(result.status.value, result.error) for result in found]


def test_a_model_is_delivered_as_the_engine_gives_it(runs) -> None:
    (result,) = runs.begin().apply(plan_of(ORDER))
    sha256 = hashlib.sha256(MODEL).hexdigest()
    said = {"delivered": str(runs.delivered), "size": len(MODEL), "sha256": sha256}
    assert (result.id, result.status, result.after) == (7, "applied", said)
    assert runs.delivered.read_bytes() == MODEL


def test_each_target_of_a_container_is_delivered_once(runs) -> None:
    final = replace(ORDER, met=replace(MET, target=0.2, value=0.1), id=8)
    runs.begin().apply(plan_of(ORDER))
    results = runs.begin().apply(plan_of(ORDER, final, ORDER))  # the pipe was started again
    assert [result.status.value for result in results] == ["unchanged", "applied", "unchanged"]
    assert len(list(runs.models.iterdir())) == 2


def test_a_job_that_has_moved_is_not_delivered_again(runs, fake_engine) -> None:
    first = "1" * 64
    fake_engine.labels["dltools.origin"] = first
    runs.models.mkdir()
    (runs.models / NAMED.replace(ID[:12], first[:12])).write_bytes(b"on its first host")
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
    fake.archive = MODEL[:4000]
    return "not delivered: the engine's archive was cut off; "


def remove_checkpoint(fake: FakeEngine) -> str:
    fake.archive = None
    return f"not delivered: Could not find the file in container {ID}; "


def hang_up(fake: FakeEngine) -> str:
    fake.faults["GET /archive"] = 0
    return f"not delivered: no Docker engine answers at {fake.url}"


@pytest.mark.parametrize("fault", [break_archive, remove_checkpoint, hang_up])
def test_what_has_failed_is_tried_again(runs, fake_engine, fault) -> None:
    why = fault(fake_engine)
    actuator = runs.begin()
    (result,) = actuator.apply(plan_of(ORDER))
    assert result.status == "failed" and (result.error or "").startswith(why)
    assert (result.error or "").endswith("it is tried again")
    assert not list(runs.models.iterdir()) if runs.models.exists() else True
    assert actuator.deliverer and actuator.deliverer.seconds_until_due() == AGAIN_S
    assert retried(actuator) == []
    runs.now = AGAIN_S
    assert [status for status, _ in retried(actuator)] == ["failed"]
    fake_engine.archive, fake_engine.faults = MODEL, {}
    runs.now = 2 * AGAIN_S
    assert retried(actuator) == [("applied", None)]
    assert actuator.deliverer.seconds_until_due() is None


def test_what_a_killed_run_had_begun_is_no_delivery(runs) -> None:
    runs.models.mkdir()
    half = runs.models / f".{NAMED}.12345678"
    half.write_bytes(MODEL[:1000])
    (result,) = runs.begin().apply(plan_of(ORDER))
    assert (result.status, list(runs.models.iterdir())) == ("applied", [runs.delivered])


def test_a_model_whose_container_is_gone_is_lost_and_said_so_once(runs, fake_engine) -> None:
    fake_engine.archive = None
    actuator = runs.begin()
    actuator.apply(plan_of(ORDER))
    fake_engine.is_there = False
    runs.now = AGAIN_S
    assert retried(actuator) == [("failed", "not delivered: the container no longer exists")]
    assert actuator.deliverer and actuator.deliverer.seconds_until_due() is None


def test_a_model_that_would_fill_the_disk_leaves_nothing_behind(runs, monkeypatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=(1 << 30) + 100))
    (result,) = runs.begin().apply(plan_of(ORDER))
    why = "not delivered: less than 1 GiB of the disk would be free; it is tried again"
    assert result.error == why
    assert not list(runs.models.iterdir())
