"""The nodes of the test cluster, and what a job on it has trained."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.cluster_nodes import Node


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    """The nodes, empty before and after."""
    urls = os.environ.get("CLUSTER_HOSTS", "").split()
    if not urls:
        pytest.skip("no cluster: run make test-cluster")
    found = [Node(number, url) for number, url in enumerate(urls, 1)]
    for node in found:
        node.clean()
    yield found
    for node in found:
        node.clean()


@pytest.fixture
def trace(tmp_path: Path) -> Any:
    """The epochs that a job with its checkpoint in `tmp_path/ckpt` has counted."""
    folder = tmp_path / "ckpt"
    folder.mkdir()

    def read() -> list[int]:
        path = folder / "trace"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    return read
