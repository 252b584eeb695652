"""Which leases of earlier runs a run renews: those of the containers that its plans cover."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.fake_engine import ID, NAME, FakeEngine, action, plan_of

from dltools.apply.actuator import Actuator
from dltools.apply.journal import Journal
from dltools.apply.rotation import Rotation
from dltools.apply.rules import Rules
from dltools.engine.interface import Engine
from dltools.engine.runs import UNKNOWN_RUN, ApplyRun
from dltools.probe.progress.expressions import compiled

SOON, LATER = "2999-01-01T00:00:00Z", "2999-01-01T00:03:00Z"
OTHERS = frozenset({"e" * 64})


@pytest.fixture
def left(actuator: Actuator, fake_engine: FakeEngine) -> FakeEngine:
    """The fake engine, after a run that has limited its container and left a lease behind."""
    actuator.lease(True)
    actuator.apply(plan_of(action({"cpus": 1.5})))
    assert actuator.leave_leases(SOON, None)
    fake_engine.labels = {"line": "a"}
    return fake_engine


def next_run(engine: Engine, journal: Journal, rotation: Rotation, **rules: Any) -> Actuator:
    rotation.run = ApplyRun(7, 1)
    return Actuator(engine, journal, rotation, Rules(**rules))


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize(
    ("covered", "rules", "is_renewed"),
    [
        (None, {}, True),
        (frozenset({ID}), {}, True),
        (OTHERS, {}, False),
        (frozenset(), {}, False),
        (None, {"labels": ["line=a"]}, True),
        (None, {"labels": ["line=b"]}, False),
        (None, {"names": [compiled(NAME, "--name")]}, True),
        (None, {"names": [compiled("other", "--name")]}, False),
        (frozenset({ID}), {"labels": ["line=b"]}, False),
    ],
)
def test_a_run_renews_what_its_plans_cover(
    engine: Engine, journal: Journal, rotation: Rotation,
    covered: frozenset[str] | None, rules: dict[str, Any], is_renewed: bool,
) -> None:  # fmt: skip
    run = next_run(engine, journal, rotation, **rules)
    run.adopt_leases(covered)
    (entry,) = journal.entries("FAKE")
    adopted = (ApplyRun(7, 1), "") if is_renewed else (UNKNOWN_RUN, SOON)
    assert (entry.leased_by, entry.until) == adopted
    assert run.leave_leases(LATER, covered) is is_renewed
    (entry,) = journal.entries("FAKE")
    assert entry.until == (LATER if is_renewed else SOON)


@pytest.mark.usefixtures("left")
def test_what_a_run_has_changed_itself_is_its_own(
    engine: Engine, journal: Journal, rotation: Rotation
) -> None:
    run = next_run(engine, journal, rotation)
    run.lease(True)
    run.apply(plan_of(action({"cpus": 1.0})))
    assert run.leave_leases(LATER, OTHERS)
    (entry,) = journal.entries("FAKE")
    assert entry.until == LATER


def test_what_is_gone_is_not_renewed(
    left: FakeEngine, engine: Engine, journal: Journal, rotation: Rotation
) -> None:
    left.is_there = False
    assert not next_run(engine, journal, rotation, labels=["line=a"]).leave_leases(LATER, None)
