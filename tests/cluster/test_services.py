"""Swarm services moved from node to node: one place for each, whatever goes wrong."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.cluster_nodes import TRAINING, Node, remove_services
from helpers.containers import eventually
from helpers.moves import goes_on, order
from helpers.tools import Tools, records

from dltools.engine.docker.engine import DockerEngine, connect
from dltools.engine.parts import part
from dltools.engine.registry import host_address
from dltools.engine.services import Services

Trace = Callable[[], list[int]]


@pytest.fixture
def swarm(nodes: list[Node]) -> Iterator[tuple[str, ...]]:
    """Options of dl-apply that name the nodes; services are removed afterwards."""
    yield (f"--host={nodes[0].url}", "--swarm")
    remove_services(nodes)


def serve(manager: Node, folder: Path, *options: str, at: Node | None = None) -> None:
    fixed = (
        "--name=job --stop-grace-period=5s --restart-condition=on-failure"
        f" --mount=type=bind,source={folder},target=/ckpt"
        " --container-label=dltools.checkpoint=/ckpt/model"
    )
    place = f"--constraint=node.hostname=={at.name}" if at else ""
    manager.create_service(" ".join((fixed, place, *options)), TRAINING)


def settle(nodes: list[Node]) -> tuple[Node, str]:
    """Wait until the service has a container, and return where it runs, and its id."""

    def found() -> list[tuple[Node, str]]:
        return [(node, id_) for node in nodes for id_ in node("ps", "-q", "--no-trunc").split()]

    (one,) = eventually(found, lambda running: len(running) == 1)
    return one


def constraints(manager: Node) -> str:
    shown = "{{.Spec.TaskTemplate.Placement.Constraints}} {{.Spec.Mode.Replicated.Replicas}}"
    return manager("service", "inspect", "job", "--format", shown)


def place(nodes: list[Node]) -> None:
    """Take back the constraint by which a service has started on a node. The docker command would
    start the task anew: it changes more of the service."""
    swarm = part(DockerEngine(connect(host_address(nodes[0].url))), Services)
    assert swarm is not None
    swarm.change("job", constraints=[])


def moved(tool: Tools, swarm: tuple[str, ...], plan: bytes, *options: str) -> list[dict[str, Any]]:
    done = tool("dl-apply", *swarm, *options, input=plan)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return records(done.stdout)


def start(nodes: list[Node], folder: Path, trace: Trace, *options: str) -> tuple[Node, str]:
    serve(nodes[0], folder, *options, at=nodes[1])
    eventually(trace)
    place(nodes)
    return settle(nodes)


def test_a_service_moves_with_its_checkpoint_and_undo_frees_it(
    tool, nodes, swarm, tmp_path, trace
) -> None:
    source, id_ = start(nodes, tmp_path / "ckpt", trace)
    target = nodes[2]
    assert source is nodes[1]
    (result,) = moved(tool, swarm, order(source, target, id_), "--dry-run")
    assert (result["status"], result["error"]) == ("planned", None)
    (result,) = moved(tool, swarm, order(source, target, id_))
    assert (result["status"], result["error"]) == ("applied", None)
    where, new = settle(nodes)
    assert (where.name, result["after"]) == ("node3", {"host": "node3", "container": new})
    goes_on(trace)
    assert constraints(nodes[0]).startswith("[node.id==")
    shown = '{{index .Spec.Labels "dltools.placed"}} {{.PreviousSpec.Mode.Replicated.Replicas}}'
    placed = nodes[0]("service", "inspect", "job", "--format", shown)
    assert placed == f"{constraints(nodes[0])[1:].split(']')[0]} 1", "a rollback must not stop it"
    # Moved again: the constraint is replaced.
    (result,) = moved(tool, swarm, order(target, nodes[0], new))
    assert (result["status"], result["error"]) == ("applied", None)
    where, new = settle(nodes)
    assert where is nodes[0]
    assert constraints(nodes[0]).count("node.id") == 1
    (result,) = records(tool("dl-apply", *swarm, "--undo").stdout)
    assert result["status"] == "applied"
    assert result["error"].startswith("its constraint to node1 is removed; it stays there")
    assert constraints(nodes[0]) == "[] 1"
    goes_on(trace)
    assert settle(nodes) == (where, new), "taking the constraint back starts nothing"


def refused(tool: Tools, swarm: tuple[str, ...], plan: bytes) -> str:
    (result,) = moved(tool, swarm, plan)
    assert result["status"] in ("skipped", "failed"), result
    return str(result["error"])


@pytest.mark.usefixtures("trace")
def test_services_that_cannot_be_moved_are_left_alone(tool, nodes, swarm, tmp_path) -> None:
    a, b, c = nodes

    def why(*options: str) -> str:
        serve(a, tmp_path / "ckpt", *options, at=b)
        eventually(lambda: len(b("ps", "-q").split()) == 1)
        id_ = b("ps", "-q", "--no-trunc")
        error = refused(tool, swarm, order(b, c, id_))
        assert b("ps", "-q", "--no-trunc") == id_, "it was left alone"
        remove_services(nodes)
        return error

    assert why() == "the constraint node.hostname==node2 of its service forbids node3"
    one_task = "a replicated one of one task can be moved"
    assert why("--mode=global") == f"its service is global; {one_task}"
    protected = "protected by its label dltools.protect"
    assert why("--label=dltools.protect=1") == f"its service is {protected}"
    assert why("--container-label=dltools.protect=1") == protected
    serve(a, tmp_path / "ckpt", "--replicas=3", "--constraint=node.role==worker")
    eventually(lambda: b("ps", "-q"))
    id_ = b("ps", "-q", "--no-trunc").split()[0]
    assert refused(tool, swarm, order(b, c, id_)) == (
        "its service has 3 tasks; one of one task can be moved"
    )


def test_a_service_is_not_moved_without_a_manager(tool, nodes, swarm, tmp_path, trace) -> None:
    del swarm
    source, id_ = start(nodes, tmp_path / "ckpt", trace)
    both = tuple(f"--host={node.url}" for node in nodes[1:])
    error = refused(tool, both, order(source, nodes[2], id_))
    assert error == "it is a task of a Swarm service, and no engine named manages its Swarm"


def test_a_target_where_it_cannot_run_is_rolled_back(tool, nodes, swarm, tmp_path, trace) -> None:
    source, id_ = start(nodes, tmp_path / "ckpt", trace, "--reserve-memory=64m")
    whole = nodes[0]("node", "inspect", "node3", "-f", "{{.Description.Resources.MemoryBytes}}")
    nodes[0].create_service(
        f"--name=fat --reserve-memory={whole} --constraint=node.hostname==node3"
    )
    eventually(lambda: nodes[2]("ps", "-q"))
    error = refused(tool, swarm, order(source, nodes[2], id_))
    assert error.startswith("not moved, it stays on node2: it does not run on node3: not within")
    assert "insufficient resources" in error
    assert len(nodes[1]("ps", "-q").split()) == 1
    assert constraints(nodes[0]) == "[] 1"
    goes_on(trace)
