"""The containers of a node's pods, on machines made of files. Nothing can be changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.made_cgroups import V1, Machine

from dltools.engine.cgroups.kubepods import KubepodsEngine
from dltools.engine.interface import GoneError, RefusedError

ID, PAUSE = "a" * 64, "b" * 64
UID = "0123abcd-0123-0123-0123-0123456789ab"
PLACES = (
    f"/kubepods/burstable/pod{UID}/{ID}",
    f"/kubepods/pod{UID}/{ID}",
    "/kubepods.slice/kubepods-burstable.slice/"
    f"kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope",
    f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-{ID}.scope",
)
LINES = (
    "2026-01-31T12:00:00.500000000Z stdout F loss: 2\n"
    "2026-01-31T12:00:01.500000000Z stderr P loss\n"
    "2026-01-31T12:00:01.600000000Z stderr F : 1\n"
)


@pytest.fixture(params=PLACES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> KubepodsEngine:
    machine = Machine(tmp_path, V1 if "slice" not in request.param else ())
    machine.add(request.param, 11)
    machine.add(request.param.replace(ID, PAUSE), 12)  # the pod's own, without a log
    links = tmp_path / "var/log/containers"
    links.mkdir(parents=True)
    (tmp_path / "real.log").write_text(LINES)
    (links / f"job-x7_lab_trainer-{ID}.log").symlink_to(tmp_path / "real.log")
    return KubepodsEngine(tmp_path)


def test_a_container_has_the_names_of_its_link(engine: KubepodsEngine) -> None:
    assert [(one.id, one.name) for one in engine.containers()] == [(ID, "lab/job-x7/trainer")]
    labels = engine.inspect(ID).labels
    assert labels == {
        "io.kubernetes.container.name": "trainer",
        "io.kubernetes.pod.name": "job-x7",
        "io.kubernetes.pod.namespace": "lab",
        "io.kubernetes.pod.uid": UID,
    }


def test_its_log_is_where_the_link_leads(engine: KubepodsEngine) -> None:
    container = engine.inspect(ID)
    entries = [one for some in engine.logs(container, 0.0) for one in some]
    assert entries == [
        b"2026-01-31T12:00:00.500000000Z loss: 2\n",
        b"2026-01-31T12:00:01.500000000Z loss",
        b"2026-01-31T12:00:01.600000000Z : 1\n",
    ]
    flow = engine.follow(container, 1769860801.55)
    assert flow.take() == [b"2026-01-31T12:00:01.600000000Z : 1\n"]
    flow.close()


def test_nothing_can_be_changed(engine: KubepodsEngine) -> None:
    found = engine.capabilities
    assert (found.limits, found.pauses, found.creates) == (frozenset(), False, False)
    assert found.why == "containers of pods can only be looked at here"
    for change in (engine.pause, engine.unpause):
        with pytest.raises(RefusedError, match="only be looked at"):
            change(ID)


def test_a_pods_own_container_is_none(engine: KubepodsEngine) -> None:
    with pytest.raises(GoneError):
        engine.inspect(PAUSE)
