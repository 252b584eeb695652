"""Whatever goes wrong in the move of a Swarm service, its task never runs on two nodes."""

import contextlib

import pytest
from helpers.examples import examples
from helpers.fake_hosts import CrashError, CrashingFiles, Fault, migrator, ordered, settle
from helpers.fake_swarm import SwarmWorld
from hypothesis import event, given
from hypothesis import strategies as st

from dltools.engine.interface import RefusedError
from dltools.errors import UnavailableError
from dltools.labels import PLACED


def settled(world: SwarmWorld) -> None:
    """Order a move, let all settle, and check that its task is in one place."""
    settle(world, RefusedError, UnavailableError)
    world.is_calm = True
    for _ in range(2 * world.lag):
        world.manager.json("GET", "/tasks")
    check(world)


def check(world: SwarmWorld) -> None:
    assert world.most_running <= 1, "the task ran on two nodes"
    manager = world.manager
    (where,) = world.running()
    assert sum(len(host.containers) for host in world.hosts.values()) == 1, "nothing is left over"
    assert manager.replicas == 1
    assert manager.constraints == (["node.id==id-b"] if where == "b" else [])
    assert manager.spec["Labels"] == ({PLACED: "node.id==id-b"} if where == "b" else {})


@examples(300)
@given(
    faults=st.dictionaries(st.integers(1, 60), st.sampled_from(Fault), max_size=6),
    lag=st.integers(1, 5),
    bad=st.sampled_from(["", "", "b"]),
    shared=st.booleans(),
    tight=st.sampled_from(["", "", "b"]),
)
def test_a_service_is_on_one_node(tmp_path_factory, faults, lag, bad, shared, tight) -> None:
    world = SwarmWorld(
        tmp_path_factory.mktemp("moves"), faults, lag=lag, bad_host=bad, shared=shared, tight=tight
    )
    settled(world)
    event(f"ends on {world.running()[0]}")


@pytest.mark.parametrize("fault", Fault)
def test_each_single_fault_at_each_call(tmp_path, fault) -> None:
    for number in range(1, 51):
        print(f"call {number}")  # pytest shows it if the test fails
        (place := tmp_path / f"{number}").mkdir()
        world = SwarmWorld(place, {number: fault}, lag=1)
        settled(world)


def test_without_faults_it_moves(tmp_path) -> None:
    world = SwarmWorld(tmp_path, lag=1)
    result = ordered(world)
    (new,) = world.hosts["b"].containers.values()
    assert (result.status, result.error) == ("applied", None)
    assert (result.before, result.after) == ({"host": "a"}, {"host": "b", "container": new.id})
    check(world)
    assert world.calls <= 50, "the test of each call must reach the last one"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"shared": False}, "b has a different checkpoint than a: they do not share the volume"),
        ({"bad_host": "b"}, "it does not run on b: failed: it exits with 1"),
        ({"tight": "b"}, "it does not run on b: not within 10 s: no suitable node"),
    ],
)
def test_a_move_that_cannot_succeed_is_rolled_back_at_once(tmp_path, changes, why) -> None:
    world = SwarmWorld(tmp_path, **changes)  # type: ignore[arg-type]
    result = ordered(world)
    assert (result.status, result.error) == ("failed", f"not moved, it stays on a: {why}")
    check(world)
    assert CrashingFiles(world).all() == []


def test_undo_takes_the_constraint_back_and_leaves_the_task(tmp_path) -> None:
    world = SwarmWorld(tmp_path)
    ordered(world)
    (planned,) = migrator(world, dry_run=True).undo(lambda _: None)
    assert planned.status == "planned"
    (result,) = migrator(world).undo(lambda _: None)
    assert result.status == "applied"
    assert (result.error or "").startswith("its constraint to b is removed; it stays there")
    assert (world.manager.constraints, world.manager.spec["Labels"]) == ([], {})
    assert world.running() == ["b"]
    assert migrator(world).undo(lambda _: None) == []


@pytest.mark.parametrize("number", range(1, 51, 3))
def test_undo_rolls_back_what_was_begun(tmp_path, number) -> None:
    world = SwarmWorld(tmp_path, {number: Fault.KILLED_AFTER}, lag=1)
    with contextlib.suppress(CrashError):
        ordered(world)
    world.is_calm = True
    migrator(world).undo(lambda _: None)
    migrator(world).go_on(lambda _: None)
    assert world.most_running <= 1
    assert (world.manager.constraints, world.manager.replicas) == ([], 1)
    assert len(world.running()) == 1


def test_a_user_who_changes_the_constraint_ends_the_record(tmp_path) -> None:
    world = SwarmWorld(tmp_path)
    ordered(world)
    world.manager.spec["TaskTemplate"]["Placement"]["Constraints"] = ["node.role==worker"]
    migrator(world).go_on(lambda _: None)
    assert CrashingFiles(world).all() == []


def test_a_dry_run_moves_nothing(tmp_path) -> None:
    world = SwarmWorld(tmp_path)
    result = ordered(world, dry_run=True)
    assert (result.status, result.after) == ("planned", {"host": "b"})
    assert world.manager.version == 1
