"""dl-apply killed (kill -9) at each step of the move of a Job, by an API server from memory."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.fake_api_server import FakeApiServer, node_of
from helpers.fake_engine import action, plan_of
from helpers.moves import KILLED
from helpers.tools import Tools, environment, records

from dltools.apply.migrate.migration import Step
from dltools.labels import PLACED
from dltools.plan.records import Op, dump_plan

HOSTS = ("--host", "kubernetes:n1", "--host", "kubernetes:n2")
MOVE = dump_plan(
    plan_of(
        action(
            {},
            Op.MIGRATE,
            host="n1",
            container_id="c-job-1",
            container_name="lab/job-1/main",
            to="n2",
        )
    )
).encode()
NOTHING = dump_plan(plan_of()).encode()
STEPS = (Step.CREATE, Step.STOP, Step.START, Step.REMOVE, Step.DONE)


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_the_next_run_goes_on_or_back(
    tool: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Step, before: bool
) -> None:
    server, state = FakeApiServer(), tmp_path / "state"
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
    try:
        server.jobs.add()
        server.nodes["n2"] = node_of("n2", "4")
        code = KILLED.format(step=str(step), before=before)
        line = [sys.executable, "-c", code, *HOSTS, "--state-dir", str(state)]
        killed = subprocess.run(line, input=MOVE, env=environment(), capture_output=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
        assert server.jobs.most_running == 1

        done = tool("dl-apply", *HOSTS, "--state-dir", state, input=NOTHING)
        assert done.returncode in (0, 1), done.stderr.decode()
        for _ in range(6):
            server.jobs.advance()
        assert server.jobs.most_running == 1
        (where,) = server.jobs.running()
        is_begun = step is not Step.CREATE and not (step is Step.STOP and before)
        assert where == ("n2" if is_begun else "n1"), records(done.stdout)
        job = server.jobs.all["job"]
        assert job["metadata"]["annotations"] == ({PLACED: "node.id==n2"} if is_begun else {})
        assert not job["spec"].get("suspend")

        undone = tool("dl-apply", *HOSTS, "--state-dir", state, "--undo")
        assert undone.returncode == 0, undone.stdout.decode()
        for _ in range(6):
            server.jobs.advance()
        assert (len(server.jobs.running()), server.jobs.most_running) == (1, 1)
        assert job["metadata"]["annotations"] == {}
        assert "affinity" not in job["spec"]["template"]["spec"]
        assert list(state.glob("migrations/*")) == []
    finally:
        server.stop()
