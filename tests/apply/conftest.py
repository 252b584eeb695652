"""A fake engine as dl-apply's modules see it, and a journal."""

from pathlib import Path

import pytest
from helpers.clocks import Clock
from helpers.fake_engine import FakeEngine

from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.turns import Rotation
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.journal import Journal


@pytest.fixture
def engine(fake_engine: FakeEngine) -> DockerEngine:
    del fake_engine
    return DockerEngine()


@pytest.fixture
def fake(fake_engine: FakeEngine) -> FakeEngine:
    fake_engine.containers.clear()
    fake_engine.add("a", "b", "c")
    return fake_engine


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def rotation(engine: DockerEngine, tmp_path: Path) -> Rotation:
    return Rotation(engine, tmp_path / "rotation")


@pytest.fixture
def actuator(engine: DockerEngine, journal: Journal, rotation: Rotation) -> EngineActuator:
    return EngineActuator(engine, journal, rotation)
