"""dl-apply on pods by their API server, which answers from memory: the plan's ids are those of the
node's runtime, by which dl-probe has observed them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.containers import eventually
from helpers.fake_api_server import FakeApiServer
from helpers.fake_engine import action, plan_of
from helpers.tools import Tools, complaint, records

from dltools.plan.records import Op, dump_plan

HOST = ("--host", "kubernetes:n1")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApiServer]:
    made = FakeApiServer()
    monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig(tmp_path / "kubeconfig")))
    yield made
    made.stop()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def plan(cpus: float, id_: str = "c1", op: Op = Op.UPDATE, **changes: Any) -> bytes:
    wanted = {"cpus": cpus} if op is Op.UPDATE else {}
    values = {"host": "n1", "container_id": id_, "container_name": "lab/train/main"} | changes
    return dump_plan(plan_of(action(wanted, op, **values))).encode()


def apply(tool: Tools, state: Path, *arguments: str, input: bytes = b"") -> tuple[int, list[Any]]:
    done = tool("dl-apply", *HOST, "--state-dir", state, *arguments, input=input)
    return done.returncode, records(done.stdout)


@pytest.mark.slow
def test_a_quota_lasts_and_undo_puts_the_pod_s_own_back(
    tool: Tools, server: FakeApiServer, state: Path
) -> None:
    server.add(limit="2", request="500m")
    code, (result,) = apply(tool, state, input=plan(1.0))
    assert (code, result["status"]) == (0, "applied"), result
    assert (result["before"], result["after"]) == ({"cpus": 2.0}, {"cpus": 1.0})
    assert server.actual()["limits"] == {"cpu": "1000m"}
    assert [one.stem for one in (state / "journal").iterdir()] == ["uid-train_main"]

    server.restart("train", "c2")  # the pod keeps it, and the journal its first settings
    code, (result,) = apply(tool, state, input=plan(0.75, "c2"))
    assert result["status"] == "applied", result
    server.restart("train", "c3")
    server.restart("train", "c4")
    code, (shown,) = apply(tool, state, "--status", "--format", "jsonl")
    assert (shown["found"]["cpus"], shown["now"]["cpus"]) == (2.0, 0.75)

    code, (result,) = apply(tool, state, "--undo")
    assert (code, result["status"], result["after"]["cpus"]) == (0, "applied", 2.0), result
    assert server.specified() == {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}
    assert list((state / "journal").iterdir()) == []


@pytest.mark.slow
def test_a_dry_run_sends_nothing(tool: Tools, server: FakeApiServer, state: Path) -> None:
    server.add()
    code, (result,) = apply(tool, state, "--dry-run", input=plan(1.0))
    assert (code, result["status"]) == (0, "planned")
    assert server.patches() == []


@pytest.mark.slow
def test_an_infeasible_resize_fails_and_leaves_nothing(
    tool: Tools, server: FakeApiServer, state: Path
) -> None:
    server.add()
    server.kubelet = "infeasible"
    code, (result,) = apply(tool, state, input=plan(1.0))
    assert (code, result["status"], result["after"]) == (1, "failed", {"cpus": 2.0})
    assert "(Infeasible): Node didn't have enough resource: cpu" in result["error"]
    assert server.specified()["limits"] == {"cpu": "2"}
    assert list((state / "journal").iterdir()) == []


@pytest.mark.slow
def test_a_run_that_is_killed_while_kubelet_waits_is_undone(
    tool: Tools, server: FakeApiServer, state: Path
) -> None:
    server.add()
    server.kubelet = "away"
    run = tool.begin("dl-apply", *HOST, "--state-dir", state)
    assert run.stdin is not None
    run.stdin.write(plan(1.0))
    run.stdin.flush()
    eventually(lambda: server.specified()["limits"] == {"cpu": "1000m"})
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    server.kubelet = "done"
    code, (result,) = apply(tool, state, "--undo")
    assert (code, result["status"]) == (0, "applied"), result
    assert server.specified()["limits"] == server.actual()["limits"] == {"cpu": "2"}


@pytest.mark.slow
def test_what_somebody_else_has_resized_is_left_alone(
    tool: Tools, server: FakeApiServer, state: Path
) -> None:
    pod = server.add()
    apply(tool, state, input=plan(1.0))
    pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "3"
    code, (result,) = apply(tool, state, "--undo")
    assert result["status"] == "skipped", result
    assert server.specified()["limits"] == {"cpu": "3"}
    code, (result,) = apply(tool, state, "--undo", "--force")
    assert (code, server.specified()["limits"]) == (0, {"cpu": "2"})


@pytest.mark.slow
def test_the_next_run_takes_over_the_lease_of_one_before(
    tool: Tools, server: FakeApiServer, state: Path
) -> None:
    server.add()
    apply(tool, state, "--lease", "10m", input=plan(1.0))
    (path,) = (state / "journal").iterdir()
    assert json.loads(path.read_text())["until"]
    covers = plan(1.0).replace(b'"kind":"plan",', b'"kind":"plan","covers":["c1"],', 1)
    before = json.loads(path.read_text())["until"]
    _, (result,) = apply(tool, state, "--lease", "20m", input=covers)
    assert result["status"] == "unchanged", result
    assert json.loads(path.read_text())["until"] > before
    code, _ = apply(tool, state, "--undo")  # and its watchdog has nothing left to do
    assert (code, server.specified()["limits"]) == (0, {"cpu": "2"})


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (plan(0.0, op=Op.PAUSE), "the engine of host n1 cannot pause containers"),
        (plan(0.0, op=Op.UPDATE, set={"cpu_weight": 300.0}), "n1 cannot set cpu_weight"),
        (plan(0.0, op=Op.UPDATE, set={"cpuset": "0"}), "n1 cannot set cpuset"),
    ],
)
@pytest.mark.slow
def test_what_the_server_cannot_do_is_refused_in_one_line(
    tool: Tools, server: FakeApiServer, state: Path, order: bytes, said: str
) -> None:
    server.add()
    _, (result,) = apply(tool, state, input=order)
    assert result["status"] == "skipped"
    assert said in result["error"]
    assert server.patches() == []


@pytest.mark.slow
def test_without_a_right_that_is_one_line(tool: Tools, server: FakeApiServer, state: Path) -> None:
    said = 'nodes "n1" is forbidden: User "me" cannot get resource "nodes"'
    server.errors["GET", "/nodes/n1"] = (403, said)
    done = tool("dl-apply", *HOST, "--state-dir", state, input=plan(1.0))
    assert done.returncode == 77
    assert said in complaint(done.stderr)


@pytest.mark.slow
def test_dl_probe_shows_limits_and_says_where_to_measure(
    tool: Tools, server: FakeApiServer
) -> None:
    server.add()
    rows = records(tool("dl-probe", *HOST, "--format", "jsonl").stdout)
    (row,) = (one for one in rows if one["kind"] == "container")
    assert (row["container_name"], row["cpu_limit_cores"]) == ("lab/train/main", 2.0)
    assert row.get("cpu_seconds") is None
    done = tool("dl-probe", *HOST, "-i", "1", timeout=60)
    assert done.returncode == 69
    assert "measure it with dl-probe --host cri:///PATH" in complaint(done.stderr)
