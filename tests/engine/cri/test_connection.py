"""How requests reach a runtime, and what is said where they do not."""

import socket
import sys
from pathlib import Path

import grpc
import pytest

from dltools.engine.cri.connection import Connection, socket_path
from dltools.engine.cri.cri_engine import CriEngine
from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.patience import Patience
from dltools.engine.registry import host_address, open_engine
from dltools.errors import ConfigError, DltoolsError, UnavailableError


def test_an_address_names_a_socket() -> None:
    assert socket_path("cri:///run/crio/crio.sock") == Path("/run/crio/crio.sock")


@pytest.mark.parametrize("url", ["cri://", "cri://run/x.sock", "cri:///run/", "cri:/run/x"])
def test_an_address_without_a_socket_is_refused(url) -> None:
    with pytest.raises(ConfigError, match="write cri:///PATH"):
        host_address(url)


def test_an_address_opens_its_runtime(runtime) -> None:
    engine = open_engine(host_address(runtime.url))
    assert isinstance(engine, CriEngine)
    assert engine.is_local and engine.cpus > 0 and engine.memory > 0


def test_a_missing_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConfigError) as caught:
        Connection("cri:///run/x.sock", Patience(0.0))
    assert str(caught.value) == (
        "cri:///run/x.sock: Kubernetes nodes need grpcio and protobuf; "
        "pip install 'dltools-cli[cri]'"
    )


@pytest.mark.parametrize(
    ("name", "why"), [("none", "no such socket; "), ("file", ""), ("socket without a listener", "")]
)
def test_a_socket_where_nothing_listens_is_named(tmp_path, name, why) -> None:
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{tmp_path}/socket without a listener")
    with pytest.raises(UnavailableError, match=f"{why}is the runtime running"):
        CriEngine(f"cri://{tmp_path}/{name}")


def test_a_containerd_without_cri_is_named(tmp_path) -> None:
    server = grpc.server(None)  # type: ignore[arg-type]
    server.add_insecure_port(f"unix://{tmp_path}/sock")
    server.start()
    try:
        with pytest.raises(DltoolsError) as caught:
            CriEngine(f"cri://{tmp_path}/sock")
    finally:
        server.stop(None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.NOT_FOUND, GoneError),
        (grpc.StatusCode.UNAVAILABLE, UnavailableError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, UnavailableError),
        (grpc.StatusCode.UNKNOWN, RefusedError),
        (grpc.StatusCode.PERMISSION_DENIED, RefusedError),
    ],
)
def test_an_error_becomes_one_line(runtime, code, kind) -> None:
    engine = CriEngine(runtime.url)
    runtime.errors["ListContainers"] = (code, "runc said\n  no")
    with pytest.raises(kind) as caught:
        engine.containers()
    assert "\n" not in str(caught.value)


def test_a_runtime_that_restarts_is_waited_for(runtime) -> None:
    told: list[str] = []
    runtime.add("a1")

    def report(error: UnavailableError) -> None:
        told.append(str(error))
        runtime.start()

    engine = CriEngine(runtime.url, Patience(10.0, report))
    runtime.stop()
    assert [one.id for one in engine.containers()] == ["a1"]
    assert len(told) == 1 and "no runtime answers" in told[0]
