"""The nodes of a Swarm over TLS, with an authority of the test's own."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.cluster_nodes import IMAGE, Node
from helpers.containers import eventually
from helpers.moves import limit
from helpers.tls import OPENSSL, begin_proxy, make_authority, make_certificate
from helpers.tools import Tools, records

PREFIX = f"dlc{os.environ.get('CLUSTER', '0')}"


@pytest.fixture
def tls(nodes: list[Node], tmp_path: Path) -> Iterator[Path]:
    """A folder with a client's certificates; the nodes' engines listen for TLS at Docker's port."""
    if OPENSSL is None:
        pytest.skip("no openssl")
    make_authority(tmp_path / "authority")
    make_certificate(tmp_path / "authority", tmp_path / "client")
    with ExitStack() as stack:
        for node in nodes:
            place = address(node, nodes[0])
            make_certificate(tmp_path / "authority", tmp_path / node.name, place)
            inside = ("nsenter", f"--net=/run/netns/{PREFIX}-{node.name}")
            socket = node.url.removeprefix("unix://")
            proxy = begin_proxy(tmp_path / node.name, place, 2376, socket, *inside)
            stack.callback(proxy.wait)
            stack.callback(proxy.kill)
            nodes[0]("node", "update", "--label-rm", "dltools.host", node.name)
            label = f"dltools.host={node.url}"
            stack.callback(nodes[0], "node", "update", "--label-add", label, node.name)
        yield tmp_path / "client"


def address(node: Node, manager: Node) -> str:
    return manager("node", "inspect", "-f", "{{.Status.Addr}}", node.name)


def test_all_nodes_are_read_and_changed_over_tls(tool: Tools, nodes: list[Node], tls: Path) -> None:
    job = nodes[2](
        "run", "-d", "--name=job", "--network=none", "--entrypoint=/bin/sleep", IMAGE, "999"
    )
    known = {
        "DOCKER_TLS_VERIFY": "1",
        "DOCKER_CERT_PATH": str(tls),
        "DOCKER_HOST": f"tcp://{address(nodes[0], nodes[0])}:2376",
    }
    done = tool("dl-probe", "--swarm", "--format", "jsonl", env=known)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    hosts = {row["host"]: row for row in rows if row["kind"] == "node"}
    assert sorted(hosts) == ["node1", "node2", "node3"]
    assert [row["container_id"] for row in rows if row["kind"] == "container"] == [job]
    done = tool("dl-apply", "--swarm", env=known, input=limit(nodes[2], job, 0.25))
    (result,) = records(done.stdout)
    assert result["status"] == "applied", result
    assert eventually(lambda: nodes[2].get("job", "{{.HostConfig.CpuQuota}}")) == "25000"


def test_a_certificate_of_another_authority_is_refused(
    tool: Tools, nodes: list[Node], tls: Path, tmp_path: Path
) -> None:
    make_authority(tmp_path / "other")
    make_certificate(tmp_path / "other", tmp_path / "stranger")
    (tmp_path / "stranger" / "ca.pem").write_bytes((tls / "ca.pem").read_bytes())
    at = {"DOCKER_TLS_VERIFY": "1", "DOCKER_HOST": f"tcp://{address(nodes[0], nodes[0])}:2376"}
    for folder in (tmp_path / "stranger", tmp_path / "other"):
        done = tool("dl-probe", "--swarm", env={**at, "DOCKER_CERT_PATH": str(folder)})
        assert done.returncode in (69, 78), done.stderr
        assert b"Traceback" not in done.stderr
        assert done.stdout == b""
