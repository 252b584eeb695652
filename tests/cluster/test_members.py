"""Tasks of Swarm services that are one training, or several, as each node's probe tells them."""

from collections.abc import Iterator

import pytest
from helpers.cluster_nodes import Node, remove_services
from helpers.containers import eventually
from helpers.tools import records


@pytest.fixture
def node(nodes: list[Node]) -> Iterator[Node]:
    """The node on which all tasks are put; services are removed afterwards."""
    yield nodes[1]
    remove_services(nodes)
    nodes[0]("network rm lab", check=False)


def serve(manager: Node, name: str, options: str) -> None:
    two = "--replicas=2 --constraint=node.hostname==node2"
    manager.create_service(f"--name={name} {two} {options}")


def test_two_tasks_are_one_job_if_they_are_distributed_and_name_no_other(tool, nodes, node) -> None:
    nodes[0]("network create --driver=overlay lab")
    serve(nodes[0], "trainer", "--env=WORLD_SIZE=2")
    serve(nodes[0], "sweep", "--env=SEED={{.Task.Slot}}")
    told = "--env=WORLD_SIZE=2 --env=MASTER_ADDR=named-1 --env=MASTER_PORT=29500"
    where = "--network=lab --hostname={{.Service.Name}}-{{.Task.Slot}}"
    serve(nodes[0], "named", f"{where} {told}")
    serve(nodes[0], "api", "--publish=18080:80")
    expected = {
        "trainer": ("swarm/trainer", 2, "other"),
        "sweep": (None, None, "other"),
        "named": ("named-1:29500 on lab", 2, "other"),
        "api": (None, None, "server"),
    }
    eventually(lambda: node("ps", "-q").split(), lambda found: len(found) == 8, seconds=60)

    def jobs() -> dict[str, set[tuple[str | None, int | None, str]]]:
        done = tool("dl-probe", f"--host={node.url}", "--format", "jsonl")
        found: dict[str, set[tuple[str | None, int | None, str]]] = {}
        for row in records(done.stdout):
            if row["kind"] == "container":
                service = row["container_name"].partition(".")[0]
                what = (row.get("job"), row.get("job_containers"), row["role"])
                found.setdefault(service, set()).add(what)
        return found

    assert eventually(jobs, lambda found: all(len(one) == 1 for one in found.values())) == {
        service: {what} for service, what in expected.items()
    }


def test_while_a_service_is_updated_more_tasks_run_than_the_job_has(tool, nodes, node) -> None:
    """So nobody takes the old and the new task of a slot for two members."""
    serve(nodes[0], "trainer", "--env=WORLD_SIZE=2 --update-order=start-first")

    def jobs() -> list[tuple[str | None, int | None]]:
        done = tool("dl-probe", f"--host={node.url}", "--format", "jsonl")
        rows = [row for row in records(done.stdout) if row["kind"] == "container"]
        return [(row.get("job"), row.get("job_containers")) for row in rows]

    pair = [("swarm/trainer", 2)] * 2
    eventually(jobs, lambda found: found == pair, seconds=60)
    nodes[0]("service update -d --no-resolve-image --force trainer")
    eventually(jobs, lambda found: len(found) > 2 and set(found) == set(pair), seconds=60)
    eventually(jobs, lambda found: found == pair, seconds=90)
