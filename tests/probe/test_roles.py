"""Whose log makes a training: none of other programs, all of trainings."""

import tomllib
from pathlib import Path

import pytest
from helpers.excerpts import excerpts, read

from dltools.engine.interface import Container, Network
from dltools.engine.process_search import Processes
from dltools.labels import Role
from dltools.observations.roles import NO_RULES
from dltools.probe.container_watch import RoleWatch

HERE = Path(__file__).parent
OTHERS: dict[str, str] = tomllib.loads((HERE / "other_programs.toml").read_text())
SERVERS = ("latency", "perf-analyzer", "serving", "flowcon")
TRAININGS = [one for one in excerpts() if one.name not in SERVERS]
FORMS = tomllib.loads((HERE / "progress" / "unseen_forms.toml").read_text())
SERVES = ("token_rate", "request_rate", "latency_seconds")
TORCH, HIDDEN = Processes(runtimes=("libtorch",)), Processes(is_readable=False)


def role(log: bytes, processes: Processes | None = None, *, ports: tuple[int, ...] = ()) -> Role:
    container = Container("c" * 64, "job", network=Network(ports=ports))
    watch = RoleWatch()
    watch.note(read(log), {})
    return watch.look(container, NO_RULES, processes or Processes(), "").role


def test_there_are_enough() -> None:
    assert len(OTHERS) >= 50


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("often", [1, 5])
def test_no_log_of_another_program_makes_a_training(name, often) -> None:
    log = OTHERS[name].encode() * often
    assert role(log) is not Role.TRAINING
    assert role(log, ports=(8080,)) is Role.SERVER


@pytest.mark.parametrize("excerpt", TRAININGS, ids=lambda one: one.name)
def test_every_log_of_a_training_makes_one(excerpt) -> None:
    assert role(excerpt.log) is Role.TRAINING
    assert role(excerpt.log, TORCH, ports=(6006,)) is Role.TRAINING


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_training_makes_one_beside_a_runtime(name) -> None:
    log = FORMS[name]["text"].replace("\\r", "\r").replace("\\t", "\t").encode()
    expected = Role.SERVER if FORMS[name]["main"] in SERVES else Role.TRAINING
    assert role(log, TORCH) is expected


def test_a_loss_without_a_step_makes_a_training_of_a_program_with_a_runtime() -> None:
    log = b"Loss: 0.52 Accuracy: 0.91 Time: 12.1\nLoss: 0.51 Accuracy: 0.92 Time: 13.1\n"
    assert role(log) is Role.OTHER
    assert role(log, TORCH) is role(log, HIDDEN) is Role.TRAINING
