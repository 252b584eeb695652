"""Tasks of a Swarm service: changed in place, each by its own node's engine."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.cluster_nodes import Node, remove_services
from helpers.containers import eventually
from helpers.moves import limit
from helpers.pipes import feed


@pytest.fixture
def service(nodes: list[Node]) -> Iterator[str]:
    nodes[0].create_service("--mode=global --name=jobs")
    yield "jobs"
    remove_services(nodes)


def test_a_task_is_changed_in_place_and_a_revert_is_told(tool, nodes, service) -> None:
    node = nodes[1]
    id_ = eventually(lambda: node("ps", "-q", "--no-trunc", "--filter=status=running"))
    started = node.get(id_, "{{.State.StartedAt}}")
    running = tool.begin("dl-apply", f"--host={nodes[0].url}", "--swarm")

    def applied(cpus: float) -> dict[str, Any]:
        return feed(running, limit(node, id_, cpus))

    result = applied(0.3)
    assert (result["status"], result["after"]["cpus"]) == ("applied", pytest.approx(0.3))
    node("update", "--cpu-quota=20000", id_)
    result = applied(0.3)
    assert (result["status"], result["error"]) == (
        "applied",
        "Swarm, or somebody, has changed cpus since dl-apply set it",
    )
    assert applied(0.25)["error"] is None
    running.communicate(timeout=60)
    assert node.get(id_, "{{.State.StartedAt}} {{.State.Running}}") == f"{started} true"
    tasks = nodes[0]("service", "ps", "-q", service).split()
    assert len(tasks) == len(nodes), "no task was started again"
