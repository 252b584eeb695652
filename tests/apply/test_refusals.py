"""Why actions are not carried out.

What a run may change: selected containers, so many, by a plan that is young enough.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers.fake_engine import ID, NAME, action, plan_of
from helpers.located_containers import container

from dltools.actions.plans import Plan, Result, Status
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.refusals import FOREIGN, GONE, Rules, has_processes, is_own, missing, refusal
from dltools.apply.turns import Rotation
from dltools.engine.docker.changes import DockerLimits
from dltools.engine.docker.engine import DockerEngine
from dltools.engine.interface import Container
from dltools.engine.journal import Journal


@pytest.mark.parametrize(
    ("state", "expected"),
    [("running", True), ("paused", True), ("exited", False), ("created", False), ("dead", False)],
)
def test_which_states_have_processes(state, expected) -> None:
    assert has_processes(container(state=state)) is expected


@pytest.mark.parametrize(
    ("started", "status"), [(-1, None), (1, Status.STALE), (30 * 60, None)], ids=str
)
def test_a_container_that_started_in_the_future_tells_of_the_clock_alone(started, status) -> None:
    """Times in seconds from when the plan was made: half a minute ago."""
    planned = datetime.now(UTC) - timedelta(seconds=30)
    there = container(state="running", started=planned + timedelta(seconds=started))
    found = refusal(Result(1, Status.SKIPPED, ID, NAME), there, planned)
    assert (found and found.status) == status


def test_a_missing_container_was_replaced_or_is_gone(engine, fake_engine) -> None:
    replaced = action({}, container_id="0" * 64)
    reason = "container ffffffffffff has replaced it since the plan was made"
    assert missing(engine, replaced) == reason
    assert missing(engine, action({}, container_id="0" * 64, container_name="other")) == GONE
    fake_engine.faults[f"GET {NAME}/json"] = 500
    assert missing(engine, replaced) == GONE


INSIDE = "c" * 64


@pytest.fixture
def act(engine: DockerEngine, journal: Journal, tmp_path: Path) -> Any:
    def apply(plan: Plan, **rules: Any) -> list[Result]:
        rotation = Rotation(engine, tmp_path / "rotation")
        return EngineActuator(engine, journal, rotation, Rules(**rules)).apply(plan)

    return apply


def statuses(results: list[Result]) -> list[str]:
    return [result.status.value for result in results]


@pytest.mark.parametrize(
    ("rules", "is_allowed"),
    [
        ({"labels": ("team=a",)}, True),
        ({"labels": ("team=b",)}, False),
        ({"names": (re.compile("x"),)}, False),
    ],
    ids=str,
)
def test_only_selected_containers_are_changed(act, fake_engine, rules, is_allowed) -> None:
    fake_engine.labels = {"team": "a"}
    (result,) = act(plan_of(action({"cpus": 1.5})), **rules)
    assert result.status is (Status.APPLIED if is_allowed else Status.SKIPPED)
    assert bool(result.error) is not is_allowed
    assert len(fake_engine.updates) == is_allowed


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_a_plan_makes_so_many_changes_at_most(act, most) -> None:
    actions = [action({"cpus": 1.0 + number / 10}, id=number) for number in range(3)]
    results = act(plan_of(*actions), max_changes=most)
    assert statuses(results) == ["applied"] * min(most, 3) + ["skipped"] * (3 - min(most, 3))
    assert all("--max-changes" in (result.error or "") for result in results[most:])


def test_what_is_so_already_is_no_change(act) -> None:
    actions = [action({"cpus": cpus}, id=number) for number, cpus in enumerate((None, 2.0))]
    assert statuses(act(plan_of(*actions), max_changes=1)) == ["unchanged", "applied"]


@pytest.mark.parametrize(("seconds", "status"), [(0, "applied"), (50, "applied"), (70, "stale")])
def test_an_old_plan_is_refused(act, seconds, status) -> None:
    at = datetime.now(UTC) - timedelta(seconds=seconds)
    plan = Plan("test", at.isoformat(), {}, {}, None, (action({"cpus": 1.5}),))
    (result,) = act(plan, max_age_s=60.0)
    assert result.status.value == status
    assert ("--max-age" in (result.error or "")) == (status == "stale")


def test_a_plan_of_no_known_age_is_refused_where_the_age_counts(act) -> None:
    plan = Plan("test", "", {}, {}, None, (action({"cpus": 1.5}),))
    assert statuses(act(plan, max_age_s=60.0)) == ["stale"]
    assert statuses(act(plan)) == ["applied"]


# What somebody else has changed


def test_the_settings_of_somebody_else_are_left_alone(act, fake_engine) -> None:
    act(plan_of(action({"cpus": 1.5})))
    fake_engine.host_config["CpuQuota"] = 300_000
    (result,) = act(plan_of(action({"cpus": 2.0})))
    assert (result.status, result.error) == (Status.SKIPPED, FOREIGN)
    assert result.before == result.after == {"cpus": 3.0}
    assert fake_engine.host_config["CpuQuota"] == 300_000
    (result,) = act(plan_of(action({"cpus": 2.0})), is_forced=True)
    assert result.status is Status.APPLIED
    (result,) = act(plan_of(action({"cpus": 2.5})))
    assert result.status is Status.APPLIED  # it is dl-apply's own setting again


def test_an_undo_leaves_somebody_else_s_settings_alone(act, fake_engine, actuator, journal) -> None:
    act(plan_of(action({"cpus": 1.5})))
    fake_engine.host_config["CpuQuota"] = 300_000
    assert statuses(actuator.undo()) == ["skipped"]
    assert fake_engine.host_config["CpuQuota"] == 300_000
    assert len(journal.all()) == 1


def test_force_also_overrides_what_the_plan_expects(act) -> None:
    plan = plan_of(action({"cpus": 1.5}, expect={"cpus": 3.0}))
    assert statuses(act(plan)) == ["stale"]
    assert statuses(act(plan, is_forced=True)) == ["applied"]


def test_a_change_that_was_cut_short_is_dl_apply_s_own(act, fake_engine, monkeypatch) -> None:
    """Before the change was made, or after: both are known beforehand."""
    update = DockerLimits.update
    for cut_before in (True, False):

        def cut(self: DockerLimits, id_: str, settings: Any, first: bool = cut_before) -> None:
            if not first:
                update(self, id_, settings)
            raise KeyboardInterrupt

        monkeypatch.setattr(DockerLimits, "update", cut)
        with pytest.raises(KeyboardInterrupt):
            act(plan_of(action({"cpus": 1.2 + cut_before})))
        monkeypatch.setattr(DockerLimits, "update", update)
        assert statuses(act(plan_of(action({"cpus": 2.5 + cut_before})))) == ["applied"]
    assert fake_engine.host_config["CpuQuota"] == 250_000


# Its own container


@pytest.mark.parametrize(
    ("file", "text", "is_inside"),
    [("cgroup", f"0::/system.slice/docker-{INSIDE}.scope\n", True),
     ("cgroup", "0::/\n", False),
     ("mountinfo", f"9 8 8:1 /x/containers/{INSIDE}/hostname /etc/hostname rw - ext4 x rw\n", True),
     ("mountinfo", f"9 8 0:4 / /x/containers/{INSIDE}/mounts/shm rw - tmpfs shm rw\n", False)],
    ids=["cgroup", "other cgroup", "mounted files", "files of a host"],
)  # fmt: skip
def test_its_own_container_is_known(tmp_path, file, text, is_inside) -> None:
    path = tmp_path / "proc" / "self" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert is_own(Container(INSIDE, "own"), tmp_path) is is_inside


def test_its_own_container_is_never_changed(act, monkeypatch) -> None:
    monkeypatch.setattr("dltools.apply.refusals.is_own", lambda _: True)
    (result,) = act(plan_of(action({"cpus": 1.5})), is_forced=True)
    assert (result.status, result.error) == (Status.SKIPPED, "dl-apply itself runs in it")
