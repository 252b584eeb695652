"""The same tests over every engine: see `subject`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from conftest import missing
from contract.subject import MEANT, Job, Subject, open_subject

if TYPE_CHECKING:
    from helpers.cluster_pods import ClusterPods


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "subject" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterPods]:
    """The Kubernetes of KUBECONFIG, for tests of what only a real one can show."""
    from helpers.cluster_pods import ClusterPods

    made = ClusterPods(os.environ["KUBECONFIG"])
    yield made
    made.close()


@pytest.fixture(params=MEANT or ["docker"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """An engine that this run is meant to try; the containers of the test are removed after."""
    name = request.param
    with ExitStack() as stack:
        try:
            found = stack.enter_context(open_subject(name))
        except LookupError as error:
            if not MEANT:
                missing(str(error))
            pytest.fail(f"DLTOOLS_CONTRACT names {name}: {error}", pytrace=False)
        yield found


SPIN = "while :; do :; done"
BUSY = "while :; do i=0; while [ $((i+=1)) -lt 30000 ]; do :; done; usleep 40000; done"
"""Wants half a CPU or more: it is awake in its turn, and leaves others' tests some of the CPUs."""

TRAINING = "i=0; while :; do i=$((i+1)); echo step $i loss: 0.$((99999-i)); usleep 50000; done"
"""It reports some twenty times a second."""


@pytest.fixture
def job(subject: Subject) -> Job:
    return subject.start("while :; do sleep 1; done", keeps_on=True)


@pytest.fixture
def busy(subject: Subject) -> list[Job]:
    """Two trainings that burn two CPUs each; `make test` has others, in tests/real_engine."""
    if not MEANT:
        pytest.skip("tests/contract/run tries them over each engine")
    script = f"({SPIN}) & ({SPIN}) & {TRAINING}"
    return [subject.start(script, name) for name in ("a", "b")]


@pytest.fixture
def awake(subject: Subject) -> list[Job]:
    """Two containers that burn so little that `make test` has them too."""
    return [subject.start(BUSY, name) for name in ("a", "b")]
