"""An engine behind TLS, with an authority of the test's own."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.containers import Containers
from helpers.tls import OPENSSL, begin_proxy, make_authority, make_certificate
from helpers.tools import Tools, complaint


@dataclass(frozen=True)
class Behind:
    """An engine's address, and the folder of a client's certificates."""

    url: str
    client: Path

    def env(self, folder: Path | None = None) -> dict[str, str]:
        return {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(folder or self.client)}


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    if OPENSSL is None:
        pytest.skip("no openssl")
    make_authority(tmp_path / "authority")
    make_certificate(tmp_path / "authority", tmp_path / "client")
    make_certificate(tmp_path / "authority", tmp_path / "server", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy = begin_proxy(tmp_path / "server", "127.0.0.1", port, "/var/run/docker.sock")
    yield Behind(f"tcp://127.0.0.1:{port}", tmp_path / "client")
    proxy.kill()
    proxy.wait()


@pytest.fixture
def stranger(tmp_path: Path, behind: Behind) -> Path:
    """A client with a certificate of another authority, which knows the engine's."""
    make_authority(tmp_path / "other")
    make_certificate(tmp_path / "other", tmp_path / "stranger")
    (tmp_path / "stranger" / "ca.pem").write_bytes((behind.client / "ca.pem").read_bytes())
    return tmp_path / "stranger"


def test_containers_are_measured_over_tls(tool: Tools, run: Containers, behind: Behind) -> None:
    job = run("sleep 600")
    found = tool(
        "dl-probe", "--host", behind.url, "--format", "jsonl", env=behind.env(), timeout=60
    )
    assert found.returncode == 0, found.stderr
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert job.id in {row["container_id"] for row in rows if row["kind"] == "container"}


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_an_authority_for_the_web_is_not_the_engines(
    tool: Tools, behind: Behind, stranger: Path, name: str
) -> None:
    """The package requests prefers these variables to the authority that Docker's settings name."""
    env = behind.env() | {name: str(stranger.parent / "other" / "ca.pem")}
    found = tool("dl-probe", "--host", behind.url, "--format", "jsonl", env=env, timeout=60)
    assert found.returncode == 0, found.stderr


def test_strangers_are_refused_with_the_reason(tool: Tools, behind: Behind, stranger: Path) -> None:
    for folder in (stranger, stranger.parent / "other"):
        found = tool("dl-probe", "--host", behind.url, env=behind.env(folder), timeout=60)
        assert found.returncode in (69, 78)
        assert behind.url in complaint(found.stderr)
        assert found.stdout == b""
