"""An engine behind TLS, with an authority of the test's own."""

from __future__ import annotations

import hashlib
import json
import shutil
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


def test_a_context_of_docker_names_its_certificates(
    tool: Tools, tmp_path: Path, behind: Behind, stranger: Path
) -> None:
    digest = hashlib.sha256(b"far").hexdigest()
    meta, tls = tmp_path / "contexts/meta" / digest, tmp_path / "contexts/tls" / digest
    for folder, code in ((behind.client, 0), (stranger, 69)):
        shutil.copytree(folder, tls / "docker", dirs_exist_ok=True)
        meta.mkdir(parents=True, exist_ok=True)
        endpoint = {"docker": {"Host": behind.url, "SkipTLSVerify": False}}
        (meta / "meta.json").write_text(json.dumps({"Name": "far", "Endpoints": endpoint}))
        env = {"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "far", "DOCKER_HOST": ""}
        found = tool("dl-probe", "--format", "jsonl", env=env, timeout=60)
        assert found.returncode == code, found.stderr


def test_a_certificate_of_another_name_is_taken_where_nothing_is_checked(
    tool: Tools, behind: Behind
) -> None:
    url = behind.url.replace("127.0.0.1", "localhost")
    env = {"DOCKER_CERT_PATH": str(behind.client)}
    for more, code in (({"DOCKER_TLS_VERIFY": "1"}, 69), ({}, 0)):
        found = tool("dl-probe", "--host", url, "--format", "jsonl", env={**env, **more})
        assert found.returncode == code, found.stderr


def test_strangers_are_refused_with_the_reason(tool: Tools, behind: Behind, stranger: Path) -> None:
    for folder in (stranger, stranger.parent / "other"):
        found = tool("dl-probe", "--host", behind.url, env=behind.env(folder), timeout=60)
        assert found.returncode in (69, 78)
        assert behind.url in complaint(found.stderr)
        assert found.stdout == b""
