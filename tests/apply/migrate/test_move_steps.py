"""Whatever goes wrong in a migration, the job ends up on one host, and never runs on two."""

import pytest
from helpers.examples import examples
from helpers.fake_hosts import (
    JOB,
    CrashError,
    CrashingFiles,
    Fault,
    World,
    migrator,
    ordered,
    settle,
)
from hypothesis import event, given
from hypothesis import strategies as st

from dltools.apply.migrate.migration import Step


def check(world: World) -> None:
    assert world.most_running <= 1, "the job ran on two hosts"
    a, b = (list(world.hosts[name].containers.values()) for name in "ab")
    assert [len(a), len(b)] in ([1, 0], [0, 1]), (a, b)
    (left,) = a + b
    assert left.state == "running" or world.bad_host in ("a", "b")
    assert left.policy == {"Name": world.policy}


fault_plans = st.dictionaries(st.integers(1, 60), st.sampled_from(Fault), max_size=6)
restart_plans = st.dictionaries(st.integers(1, 60), st.sampled_from("ab"), max_size=3)


@examples(400)
@given(
    faults=fault_plans,
    restarts=restart_plans,
    policy=st.sampled_from(["no", "always"]),
    deaf=st.booleans(),
    shared=st.booleans(),
    bad=st.sampled_from(["", "", "b"]),
)
def test_a_job_is_on_one_host_whatever_goes_wrong(
    tmp_path_factory, faults, restarts, policy, deaf, shared, bad
) -> None:
    if policy == "no":
        restarts = {}  # a host that is switched off ends a job that nobody starts again
    world = World(tmp_path_factory.mktemp("moves"), faults, restarts, policy, deaf, bad, shared)
    settle(world)
    check(world)
    event(f"ends on {'b' if world.hosts['b'].containers else 'a'}")


@pytest.mark.parametrize("fault", Fault)
def test_each_single_fault_at_each_call(tmp_path, fault) -> None:
    for number in range(1, 31):
        print(f"call {number}")  # pytest shows it if the test fails
        (place := tmp_path / f"{number}").mkdir()
        world = World(place, {number: fault})
        settle(world)
        check(world)


def test_without_faults_it_moves(tmp_path) -> None:
    world = World(tmp_path)
    result = ordered(world)
    (new,) = world.hosts["b"].containers.values()
    assert (result.status, result.error) == ("applied", None)
    assert (result.before, result.after) == ({"host": "a"}, {"host": "b", "container": new.id})
    assert new.labels["dltools.origin"] == f"{1:064x}"
    check(world)
    assert world.calls <= 30, "the test of each call must reach the last one"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"shared": False}, "b has a different checkpoint than a: they do not share the volume"),
        ({"bad_host": "b"}, "it does not run on b: exited with status 1"),
    ],
)
def test_a_move_that_cannot_succeed_is_rolled_back_at_once(tmp_path, changes, why) -> None:
    world = World(tmp_path, **changes)  # type: ignore[arg-type]
    result = ordered(world)
    assert (result.status, result.error) == ("failed", f"not moved, it stays on a: {why}")
    assert world.running() == ["a"]
    assert CrashingFiles(world).all() == []


def test_a_name_that_is_taken_on_the_target_leaves_the_job_alone(tmp_path) -> None:
    world = World(tmp_path)
    other = world.hosts["b"].add(JOB, {}, "no", "exited")
    result = ordered(world)
    assert result.error == "not moved, it stays on a: b cannot create it: the name job is in use"
    assert list(world.hosts["b"].containers) == [other.id]
    assert world.running() == ["a"]


def test_a_target_that_does_not_answer_any_more_is_waited_for(tmp_path) -> None:
    world = World(tmp_path)
    ordered(world)
    lost = dict.fromkeys(range(world.started_at, 99), Fault.LOST_BEFORE)
    world = World(tmp_path / "2", lost)
    result = ordered(world)
    assert result.error == (
        "no answer; it is stopped on a, and may run on b; the next run of dl-apply continues"
    )
    assert world.running() == []
    world.faults = {}
    (result,) = migrator(world).go_on(lambda _: None)
    assert (result.status, world.running()) == ("applied", ["b"])


def test_a_host_that_is_not_among_those_of_the_run_is_waited_for(tmp_path) -> None:
    world = World(tmp_path, {12: Fault.KILLED_BEFORE})
    with pytest.raises(CrashError):
        ordered(world)
    (left,) = CrashingFiles(world).all()
    assert left.is_open and left.step is not Step.CREATE
    world.faults = {}
    b = world.hosts.pop("b")
    (result,) = migrator(world).go_on(lambda _: None)
    assert (result.error or "").startswith("host b is not among the hosts of this run; ")
    world.hosts["b"] = b
    (result,) = migrator(world).go_on(lambda _: None)
    assert result.status == "applied"


@pytest.mark.parametrize("number", range(1, 31))
def test_undo_rolls_back_what_was_begun_and_says_what_it_cannot(tmp_path, number) -> None:
    world = World(tmp_path, {number: Fault.KILLED_AFTER})
    try:
        ordered(world)
    except CrashError:
        left = CrashingFiles(world).all()
    else:
        left = []
    world.is_calm = True
    results = migrator(world).undo(lambda _: None)
    for one, result in zip(left, results, strict=False):
        if one.step in (Step.REMOVE, Step.DONE):
            assert result.status == "skipped"
            assert "only a plan can move it back" in (result.error or "")
        else:
            assert (result.status, result.error) == ("applied", None)
            assert world.running() == ["a"]
    migrator(world).go_on(lambda _: None)
    check(world)


def test_a_dry_run_moves_nothing(tmp_path) -> None:
    world = World(tmp_path)
    result = ordered(world, dry_run=True)
    assert (result.status, result.after) == ("planned", {"host": "b"})
    assert world.calls == 0
