"""Engines that are reached over SSH and TCP, as those on other machines are."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.ssh_server import SSHD, SshServer
from helpers.tools import complaint

from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.registry import host_address
from dltools.errors import UnavailableError


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    with SshServer(tmp_path) as server:
        monkeypatch.setenv("PATH", f"{server.path}:{os.environ['PATH']}")
        yield server


def test_an_engine_is_reached_over_ssh(ssh, run) -> None:
    job = run("echo one; sleep 600")
    engine = DockerEngine(connect(host_address(ssh.url)))
    assert not engine.is_local
    assert engine.inspect(job.id).name == job.name


def test_a_broken_tunnel_is_opened_again(ssh, engine) -> None:
    found = connect(host_address(ssh.url))
    tunnel = found._dial.__self__
    tunnel._ssh.kill()
    tunnel._ssh.wait()
    assert found.json("GET", "/info")["ID"] == engine.id


def test_a_login_that_fails_is_told(ssh) -> None:
    with pytest.raises(UnavailableError, match=r"Permission denied.*without a password"):
        connect(host_address(ssh.url.replace("ssh://", "ssh://nobody-here@")))
    with pytest.raises(UnavailableError, match="Connection refused"):
        connect(host_address("ssh://127.0.0.1:1"))


def test_ssh_that_is_not_installed_is_told(tool, tmp_path) -> None:
    done = tool("dl-probe", env={"DOCKER_HOST": "ssh://me@gpu-1", "PATH": str(tmp_path)})
    assert done.returncode == 69
    assert "the program ssh is missing; install it" in complaint(done.stderr)
