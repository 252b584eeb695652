"""The tools beside an engine that stumbles, request by request: a part of
tests/trust/stumbling.py."""

import os
from collections.abc import Iterator

import pytest
from helpers.stumbles import Stumbles, faults_of

from dltools.engine.docker.engine import DockerEngine

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stumbles(engine: DockerEngine) -> Iterator[Stumbles]:
    del engine
    with Stumbles(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")) as made:
        yield made


@pytest.mark.parametrize("kind", ["version", "info", "list", "inspect", "past events", "logs"])
def test_a_sample_is_taken_or_one_line_says_why_not(stumbles, kind) -> None:
    outcomes = {fault: stumbles.once(kind, fault) for fault in faults_of(kind)}
    assert not {fault: outcome for fault, outcome in outcomes.items() if outcome.broken}


@pytest.mark.parametrize("kind", ["update", "pause"])
def test_the_pipe_goes_on(stumbles, kind) -> None:
    outcome = stumbles.pipe(kind, faults_of(kind))
    assert not outcome.broken, outcome
