"""Jobs as services that move, by an API server that answers from memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import api_rules
from helpers.fake_api_server import FakeApiServer, node_of, rights_of
from helpers.fake_engine import action
from hypothesis import event, given
from hypothesis import strategies as st

from dltools.apply.migrate.migration import MigrationFiles, Step
from dltools.apply.migrate.migrator import Migrator
from dltools.apply.migrate.mover import Mover
from dltools.engine.interface import GoneError, RefusedError
from dltools.engine.kubernetes.jobs import ONLY_SUSPENDED, Jobs
from dltools.engine.kubernetes.kubernetes_engine import KubernetesEngine
from dltools.labels import PLACED
from dltools.plan.records import Op, Result, Status

pytestmark = pytest.mark.slow  # the client takes 0.4 s to import

B = "node.id==n2"
TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
FIELD = {"key": "metadata.name", "operator": "In", "values": ["n2"]}


class Cluster:
    """Two nodes, n1 with the Job's pod, and what dl-apply sees of them."""

    def __init__(self, server: FakeApiServer, folder: Path, **job: Any) -> None:
        self.server, self.now = server, 0.0
        server.jobs.add(**job)
        server.nodes["n2"] = node_of("n2", "4")
        self.engines = {name: KubernetesEngine(name) for name in ("n1", "n2")}
        self.files = MigrationFiles(folder)

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 1.0)

    def migrator(self, **how: bool) -> Migrator:
        mover = Mover(self.engines, self.files, self.sleep, lambda: self.now)
        return Migrator(mover, **how)

    def move(self, to: str = "n2", **how: bool) -> Result:
        source = "n1" if to == "n2" else "n2"
        (listed,) = self.engines[source].containers()
        container = self.engines[source].inspect(listed.id)
        values = {
            "host": source,
            "container_id": listed.id,
            "container_name": listed.name,
            "to": to,
        }
        found = Result(1, Status.SKIPPED, listed.id, listed.name)
        return self.migrator(**how).migrate(action({}, Op.MIGRATE, **values), container, found, {})

    @property
    def affinity(self) -> Any:
        return self.server.jobs.all["job"]["spec"]["template"]["spec"].get("affinity")

    @property
    def annotations(self) -> Any:
        return self.server.jobs.all["job"]["metadata"]["annotations"]


@pytest.fixture
def cluster(server: FakeApiServer, tmp_path: Path) -> Cluster:
    return Cluster(server, tmp_path / "migrations")


def test_a_job_moves_and_undo_frees_it(cluster: Cluster) -> None:
    server = cluster.server
    assert server.jobs.running() == ["n1"]
    result = cluster.move()
    assert (result.status, result.error) == (Status.APPLIED, None)
    assert server.jobs.running() == ["n2"]
    required = {"nodeSelectorTerms": [{"matchFields": [FIELD]}]}
    assert cluster.affinity == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    assert cluster.annotations == {PLACED: B}
    (result,) = cluster.migrator().undo(lambda _: None)
    assert result.status is Status.APPLIED
    assert result.error == "its constraint to n2 is removed; it was started anew"
    assert (cluster.affinity, cluster.annotations) == (None, {})
    assert cluster.files.all() == []
    server.jobs.advance()
    server.jobs.advance()
    server.jobs.advance()
    assert len(server.jobs.running()) == server.jobs.most_running == 1


def test_the_rights_of_the_samples_are_those_that_moves_use(cluster: Cluster) -> None:
    cluster.move()
    cluster.migrator().undo(lambda _: None)
    given = rights_of("resize.yaml", "move.yaml")
    assert cluster.server.used_rights() == given - {("pods/resize", "patch")}


def test_a_job_moves_back_by_another_plan(cluster: Cluster) -> None:
    cluster.move()
    cluster.migrator().go_on(lambda _: None)
    assert cluster.move("n1").status is Status.APPLIED
    assert cluster.server.jobs.running() == ["n1"]
    assert cluster.annotations == {PLACED: "node.id==n1"}


def test_what_a_job_asks_of_nodes_stays(server: FakeApiServer, tmp_path: Path) -> None:
    cluster = Cluster(server, tmp_path / "migrations")
    preferred = [{"weight": 1, "preference": TERM}]
    given = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }
    }
    server.jobs.all["job"]["spec"]["template"]["spec"]["affinity"] = given
    assert cluster.move().status is Status.APPLIED
    assert cluster.affinity["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{**TERM, "matchFields": [FIELD]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }
    cluster.migrator().undo(lambda _: None)
    assert cluster.affinity == given


@pytest.mark.parametrize(
    ("break_", "said"),
    [
        (lambda s, _: s.version.update(minor="35"), "is of Kubernetes 1.35: Jobs that"),
        (lambda s, _: s.claims["data"]["spec"].update(accessModes=["ReadWriteOnce"]),
         "its claim data is not ReadWriteMany"),
        (lambda _, job: job["spec"].update(completions=3), "its Job is of several pods"),
        (lambda _, job: job["spec"].update(managedBy="kueue.x-k8s.io/multikueue"),
         "its Job is another controller's"),
        (lambda _, job: job["metadata"]["labels"].update({"kueue.x-k8s.io/queue-name": "q"}),
         "its Job is in a queue of Kueue"),
        (lambda _, job: job["metadata"]["annotations"].update({"dltools.protect": "true"}),
         "its service is protected by its label dltools.protect"),
        (lambda s, _: s.nodes["n2"].update(spec={"unschedulable": True}),
         "its cluster says of n2: ready, cordoned"),
    ],
)  # fmt: skip
def test_what_cannot_move_is_left_alone(cluster: Cluster, break_: Any, said: str) -> None:
    break_(cluster.server, cluster.server.jobs.all["job"])
    result = cluster.move()
    assert result.status is Status.SKIPPED
    assert said in (result.error or "")
    assert cluster.server.jobs.running() == ["n1"]
    assert not any(method == "PATCH" for method, _, _ in cluster.server.requests)


def test_a_pod_of_no_job_and_one_without_a_shared_checkpoint_stay(
    cluster: Cluster, server: FakeApiServer
) -> None:
    server.add("bare")
    assert cluster.engines["n1"].inspect("lab/bare/main").ties == (
        "its pod is of no Job: Kubernetes moves no pods",
    )
    del server.pods["lab", "bare"]
    (pod,) = server.jobs.pods_of("uid-job")
    pod["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    assert "is not on a volume that another host can have" in (cluster.move().error or "")
    pod["metadata"]["annotations"] = {}
    assert "it has no label dltools.checkpoint" in (cluster.move().error or "")


def test_a_target_without_room_gives_the_job_back(cluster: Cluster) -> None:
    cluster.server.jobs.full.add("n2")
    result = cluster.move()
    assert result.status is Status.FAILED
    assert "it does not run on n2" in (result.error or "")
    assert "0/2 nodes are available" in (result.error or "")
    assert (cluster.affinity, cluster.annotations) == (None, {})
    for _ in range(4):
        cluster.server.jobs.advance()
    assert cluster.server.jobs.running() == ["n1"]


def test_a_server_that_says_1_36_and_cannot_gives_the_job_back(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_rules, "may_place", lambda *_: False)
    result = cluster.move()
    assert result.status is Status.FAILED
    assert "field is immutable" in (result.error or "")
    for _ in range(4):
        cluster.server.jobs.advance()
    assert cluster.server.jobs.running() == ["n1"]


def test_a_pod_that_does_not_stop_is_waited_for_by_the_next_run(cluster: Cluster) -> None:
    cluster.server.jobs.stuck = True
    result = cluster.move()
    assert result.status is Status.FAILED
    assert "does not stop on n1" in (result.error or "")
    assert "the next run of dl-apply goes on" in (result.error or "")
    cluster.server.jobs.stuck = False
    (result,) = cluster.migrator().go_on(lambda _: None)
    assert result.status is Status.APPLIED
    assert cluster.server.jobs.running() == ["n2"]
    assert cluster.server.jobs.most_running == 1


def test_a_job_that_is_done_meanwhile_is_left(cluster: Cluster) -> None:
    jobs = Jobs(cluster.engines["n1"]._server)
    cluster.server.jobs.finish()
    with pytest.raises(GoneError, match="job lab/job is over"):
        jobs.change("lab/job", replicas=0)
    with pytest.raises(GoneError):
        jobs.service("lab/job")


def test_a_running_job_keeps_its_node(cluster: Cluster) -> None:
    jobs = Jobs(cluster.engines["n1"]._server)
    with pytest.raises(RefusedError, match=ONLY_SUSPENDED):
        jobs.change("lab/job", constraints=[B])


class KilledError(BaseException):
    """dl-apply is killed."""


@given(
    kills=st.dictionaries(st.integers(1, 40), st.booleans(), max_size=5),
    slow=st.integers(0, 3),
    stops_in=st.integers(0, 12),
    is_full=st.booleans(),
    undoes=st.booleans(),
)
def test_a_job_never_runs_twice_whenever_dl_apply_is_killed(
    tmp_path_factory: pytest.TempPathFactory,
    kills: dict[int, bool],
    slow: int,
    stops_in: int,
    is_full: bool,
    undoes: bool,
) -> None:
    folder = tmp_path_factory.mktemp("killed")
    server = FakeApiServer()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(server.kubeconfig(folder / "kubeconfig")))
            server.jobs.slow, server.jobs.stops_in = slow, stops_in
            _move_with_kills(Cluster(server, folder / "migrations"), kills, is_full, undoes)
    finally:
        server.stop()


def _move_with_kills(cluster: Cluster, kills: dict[int, bool], is_full: bool, undoes: bool) -> None:
    server, calls = cluster.server, 0
    if is_full:
        server.jobs.full.add("n2")
    for engine in cluster.engines.values():
        ask = engine._server._ask

        def killed(request: Any, ask: Any = ask) -> Any:
            nonlocal calls
            calls += 1
            if kills.get(calls) is False:
                raise KilledError
            found = ask(request)
            if kills.get(calls) is True:
                raise KilledError
            return found

        engine._server._ask = killed  # type: ignore[method-assign]
    begin: Any = cluster.move
    for _ in range(20):
        try:
            begin()
        except KilledError:
            begin = _next_run(cluster, undoes)
            continue
        if not any(one.is_open for one in cluster.files.all()):
            break
        begin = _next_run(cluster, undoes)
    for _ in range(6 + 2 * server.jobs.slow):
        server.jobs.advance()
    assert server.jobs.most_running == 1, "it ran twice"
    (where,) = server.jobs.running()
    event(f"it is on {where}")
    left = cluster.files.all()
    assert all(one.step is Step.DONE for one in left)
    if left:
        assert (where, cluster.annotations) == ("n2", {PLACED: B})
    else:
        assert (cluster.affinity, cluster.annotations) == (None, {})


def _next_run(cluster: Cluster, undoes: bool) -> Any:
    """Return what the next run of dl-apply does: it goes on, or undoes."""
    migrator = cluster.migrator()
    return lambda: (migrator.undo if undoes else migrator.go_on)(lambda _: None)
