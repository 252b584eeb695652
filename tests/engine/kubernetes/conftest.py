"""An API server from memory, and the engine of its node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.clocks import Clock
from helpers.fake_api_server import FakeApiServer

from dltools.engine.kubernetes.kubernetes_engine import KubernetesEngine


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApiServer]:
    made = FakeApiServer()
    monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig(tmp_path / "kubeconfig")))
    yield made
    made.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(server: FakeApiServer, clock: Clock) -> KubernetesEngine:
    return KubernetesEngine(server.node, sleep=clock.sleep, clock=clock)
