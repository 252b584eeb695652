"""Plans on an engine: what each action becomes, and which containers are changed."""

import pytest
from helpers.fake_engine import HOST, ID, NAME, action, plan_of

from dltools.actions.plans import Action, Op, Result, Status
from dltools.apply.engine_actuator import EngineActuator
from dltools.apply.refusals import FOREIGN, check_offline


def applied(actuator: EngineActuator, *actions: Action) -> list[Result]:
    told: list[Result] = []
    results = actuator.apply(plan_of(*actions), told.append)
    assert told == results
    return results


def test_a_quota_is_applied_and_journalled(actuator, fake_engine, journal) -> None:
    (result,) = applied(actuator, action({"cpus": 1.5}))
    assert result == Result(1, Status.APPLIED, ID, NAME, {"cpus": None}, {"cpus": 1.5})
    assert fake_engine.updates == [{"CpuPeriod": 100_000, "CpuQuota": 150_000}]
    (entry,) = journal.all()
    assert (entry.settings["cpus"], entry.run.policy) == (None, "test")
    assert actuator.changed == {ID}


def test_what_is_as_wanted_is_not_sent(actuator, fake_engine) -> None:
    (result,) = applied(actuator, action({"cpus": None, "weight": 1024}))
    assert result.status is Status.UNCHANGED
    assert fake_engine.updates == []
    assert actuator.changed == set()


@pytest.mark.parametrize(
    ("wrong", "status", "error"),
    [
        ({"host": "b"}, "skipped", f"the action is for host b, and this engine is on host {HOST}"),
        ({"op": Op.MIGRATE}, "skipped", "name both hosts with --host to have jobs moved"),
        ({"op": Op.DELIVER}, "skipped", "give --deliver-dir to have models delivered"),
        ({"set": {"memory": 1, "cpus": 1}}, "skipped", "dl-apply cannot set memory"),
        ({"container_id": "0"}, "stale", "container ffffffffffff has replaced it since the plan"),
        ({"container_id": "0", "container_name": "x"}, "stale", "the container no longer exists"),
        ({"expect": {"cpus": 2.0}}, "stale", "its settings have changed since the plan was made"),
        ({"set": {"cpus": 0.001}}, "failed", "cpus 0.001 is not a number of at least 0.01 cores"),
        ({"set": {"cpuset": "9"}}, "skipped", "cpuset 9: containers can use only CPUs 0-3 here"),
    ],
    ids=str,
)
def test_why_an_action_is_not_carried_out(actuator, fake_engine, wrong, status, error) -> None:
    (result,) = applied(actuator, action(**({"wanted": {"cpus": 1.5}} | wrong)))
    assert result.status == status
    assert str(result.error).startswith(error)
    assert fake_engine.updates == []


def test_a_protected_container_is_left_alone(actuator, fake_engine) -> None:
    fake_engine.labels = {"dltools.protect": "1"}
    turn = action({"group": 0, "turn_s": 1.0}, Op.ROTATE)
    for wanted in (action({"cpus": 1.5}), action({}, Op.PAUSE), turn):
        (one,) = applied(actuator, wanted)
        assert (one.status, one.error) == ("skipped", "protected by its label dltools.protect")
    assert (fake_engine.updates, fake_engine.state) == ([], "running")


def test_one_action_that_fails_keeps_no_other_from_its_turn(actuator, fake_engine) -> None:
    wrong = action({"cpus": 0.5}, container_id="0", container_name="x")
    results = applied(actuator, wrong, action({"cpus": 1.5}, id=2))
    assert [result.status for result in results] == ["stale", "applied"]
    assert fake_engine.host_config["CpuQuota"] == 150_000


@pytest.mark.parametrize("was", [0, 200_000])
def test_an_owner_who_sets_what_was_there_before_is_left_alone(actuator, fake_engine, was) -> None:
    fake_engine.host_config["CpuQuota"] = was
    (first,) = applied(actuator, action({"cpus": 1.5}))
    fake_engine.host_config["CpuQuota"] = was
    results = applied(actuator, action({"cpus": 1.5}), action({"cpus": 1.0}))
    assert first.status is Status.APPLIED
    assert {(one.status, one.error) for one in results} == {(Status.SKIPPED, FOREIGN)}
    assert fake_engine.host_config["CpuQuota"] == was


def test_a_setting_that_swarm_has_changed_is_told_once(actuator, fake_engine) -> None:
    fake_engine.labels = {"com.docker.swarm.task.id": "x"}
    (first,) = applied(actuator, action({"cpus": 1.5}))
    fake_engine.host_config["CpuQuota"] = 0
    (second,) = applied(actuator, action({"cpus": 1.5}))
    (third,) = applied(actuator, action({"cpus": 1.0}))
    assert [one.status for one in (first, second, third)] == ["applied"] * 3
    assert (first.error, third.error) == (None, None)
    assert second.error == "Swarm, or somebody, has changed cpus since dl-apply set it"


# Pauses


def test_a_pause_is_applied_once(actuator, fake_engine, journal) -> None:
    pause = action({}, Op.PAUSE)
    (first,), (second,) = applied(actuator, pause), applied(actuator, pause)
    assert first == Result(1, Status.APPLIED, ID, NAME, {"state": "running"}, {"state": "paused"})
    assert second.status is Status.UNCHANGED
    assert fake_engine.state == "paused"
    assert [entry.state for entry in journal.all()] == ["running"]


def test_an_engine_that_refuses_a_pause_is_quoted(actuator, fake_engine) -> None:
    fake_engine.faults["POST /pause"] = 500
    (result,) = applied(actuator, action({}, Op.PAUSE))
    assert (result.status, result.error) == ("failed", "status 500 on demand")


# Turns


def test_a_turn_is_given_when_the_plan_has_been_applied(actuator, rotation) -> None:
    turn = action({"group": 0, "turn_s": 9.0}, Op.ROTATE)
    (result,) = applied(actuator, turn)
    assert (result.status, result.after) == ("applied", {"group": 0, "turn_s": 9.0})
    known = rotation.turn_of(ID)
    assert known is not None
    assert (known.group, known.seconds) == (0, 9.0)
    assert applied(actuator, turn)[0].status is Status.UNCHANGED
    assert applied(actuator) == []
    assert rotation.turn_of(ID) is None


@pytest.mark.parametrize(
    ("labels", "state", "error"),
    [
        ({"dltools.qoe": "0.2"}, "running", "it serves (label dltools.qoe): dl-apply never pauses"),
        ({}, "paused", "it is paused already, and not by dl-apply"),
    ],
)
def test_containers_that_take_no_turns(actuator, fake_engine, labels, state, error) -> None:
    fake_engine.labels, fake_engine.state = labels, state
    (result,) = applied(actuator, action({"group": 0, "turn_s": 9.0}, Op.ROTATE))
    assert result.status is Status.SKIPPED
    assert str(result.error).startswith(error)


# Dry runs


@pytest.mark.parametrize(
    ("one", "after"),
    [
        (action({"cpus": 1.5}), {"cpus": 1.5}),
        (action({}, Op.PAUSE), {"state": "paused"}),
        (action({"group": 0, "turn_s": 1.0}, Op.ROTATE), {"group": 0, "turn_s": 1.0}),
    ],
    ids=["update", "pause", "rotate"],
)
def test_a_dry_run_changes_nothing(engine, journal, rotation, fake_engine, one, after) -> None:
    actuator = EngineActuator(engine, journal, rotation, dry_run=True)
    (result,) = applied(actuator, one)
    assert (result.status, result.after) == ("planned", after)
    assert (fake_engine.updates, fake_engine.state) == ([], "running")
    assert journal.all() == []
    assert not rotation.has_turns


def test_offline_the_plan_is_believed() -> None:
    told: list[Result] = []
    fit = action({"cpus": 1.5}, expect={"cpus": 2.0})
    unfit = action({"cpus": 0.0}, id=2, expect={"cpus": 2.0})
    check_offline(plan_of(fit, unfit), told.append)
    assert [(one.status, one.before, one.after) for one in told] == [
        ("planned", {"cpus": 2.0}, {"cpus": 1.5}),
        ("failed", {"cpus": 2.0}, {"cpus": 2.0}),
    ]


def test_a_container_takes_no_turns_where_another_of_its_job_cannot(actuator) -> None:
    """Each would wait for the other."""
    turn = {"group": 0, "turn_s": 9.0}
    own = action(turn, Op.ROTATE, job="pair")
    gone = action(turn, Op.ROTATE, job="pair", container_id="0", container_name="x")
    (one,) = applied(actuator, own)
    assert one.status is Status.APPLIED
    one, other = applied(actuator, own, gone)
    assert (one.status, one.error) == (Status.SKIPPED, "x, of the same job, cannot take turns")
    assert other.status is Status.STALE
    assert actuator.rotation.turn_of(ID) is None
    alone, _ = applied(actuator, action(turn, Op.ROTATE), gone)
    assert alone.status is Status.APPLIED
