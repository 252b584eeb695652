"""The labels of simulated jobs, and the targets that policies read in them."""

from __future__ import annotations

import json

from dltools.plan.signals.targets import Targets, parse
from dltools.sim.curve import LearningCurve
from dltools.sim.labels import labels_of, labels_text
from dltools.sim.workload import Job


def test_a_training_says_its_targets_and_which_way_is_better() -> None:
    rising = LearningCurve("score", "linear", 0.0, 1.0)
    found = parse(labels_of(Job("a", curve=rising, first=0.5, final=0.9)))
    assert found == Targets("score", "max", 0.5, 0.9)
    assert parse(labels_of(Job("a", first=0.5))) == Targets("loss", "min", 0.5)


def test_its_length_is_known_to_the_clairvoyant_alone() -> None:
    job = Job("a", epochs=7)
    assert labels_of(job) == {}
    assert parse(labels_of(job, clairvoyant=True)).epochs == 7


def test_a_serving_job_says_its_response_time() -> None:
    job = Job("s", request=0.1, duration=9.0, qoe=0.2)
    assert parse(labels_of(job, clairvoyant=True)).qoe_s == 0.2
    assert json.loads(labels_text(job) or "") == labels_of(job)
    assert labels_text(Job("s", request=0.1)) is None
