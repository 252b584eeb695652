"""An engine behind TLS, with an authority of the test's own."""

import hashlib
import json
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.containers import socket_path
from helpers.tls import OPENSSL, begin_proxy, make_authority, make_certificate
from helpers.tools import complaint


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
    proxy = begin_proxy(tmp_path / "server", "127.0.0.1", port, socket_path())
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


def test_containers_are_measured_over_tls(tool, run, behind) -> None:
    job = run("sleep 600")
    found = tool(
        "dl-probe", "--host", behind.url, "--format", "jsonl", env=behind.env(), timeout=60
    )
    assert found.returncode == 0, found.stderr
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert job.id in {row["container_id"] for row in rows if row["kind"] == "container"}


def test_a_context_of_docker_names_its_certificates(tool, behind, tmp_path) -> None:
    digest = hashlib.sha256(b"lab").hexdigest()
    meta, tls = (tmp_path / "docker/contexts" / kind / digest for kind in ("meta", "tls"))
    meta.mkdir(parents=True)
    endpoint = {"Host": behind.url, "SkipTLSVerify": False}
    (meta / "meta.json").write_text(json.dumps({"Endpoints": {"docker": endpoint}}))
    shutil.copytree(behind.client, tls / "docker")
    env = {"DOCKER_CONFIG": str(tmp_path / "docker")}
    found = tool("dl-probe", "--context", "lab", "--format", "jsonl", env=env, timeout=60)
    assert found.returncode == 0, found.stderr


def test_an_authority_for_the_web_is_not_the_engines(tool, behind, stranger) -> None:
    env = behind.env() | {"SSL_CERT_FILE": str(stranger.parent / "other" / "ca.pem")}
    found = tool("dl-probe", "--host", behind.url, "--format", "jsonl", env=env, timeout=60)
    assert found.returncode == 0, found.stderr


def test_strangers_are_refused_with_the_reason(tool, behind, stranger) -> None:
    for folder in (stranger, stranger.parent / "other"):
        found = tool("dl-probe", "--host", behind.url, env=behind.env(folder), timeout=60)
        assert found.returncode in (69, 78)
        assert behind.url in complaint(found.stderr)
        assert found.stdout == b""
