"""A host that is read from observations, sample by sample."""

import pytest
from helpers.observed_rows import BEGUN, at, container, node, point
from helpers.recorded_hosts import A, B, begin, introduce, losses, micros, new, read, sample

from dltools.observations.table import Row
from dltools.plan.planner import copied
from dltools.plan.policy.interface import Allocation, Requirements
from dltools.plan.realisation.queue_positions import Queue
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import InForce

TARGETS = '{"dltools.metric": "loss", "dltools.target": "0.5", "dltools.target.final": "0.1"}'


# Filling the history


def after_a_sample(*rows: Row) -> ContainerHistory:
    """What is known of the container a after a sample."""
    host = begin(new(), *rows)
    read(host, 1)
    host.record()
    return host.history.containers[A]


def test_a_sample_fills_the_history() -> None:
    host = begin(new(), *sample(2, "a", "b", cpuset="0-1", thread_count=3))
    read(host, 1)
    history, a = host.history, host.history.containers[A]
    assert (history.sampled_at, history.cpus, history.cpuset) == (micros(2), 2.0, "0-1")
    assert list(history.containers) == [A, B]
    assert (a.name, a.arrived, a.use.started) == ("a", micros(2), round(BEGUN.timestamp() * 1e6))
    assert a.in_force == InForce({"cpus": 2.0, "weight": 1024.0, "cpuset": "0-1"})
    assert a.use.threads == 3
    assert a.use.samples == [(micros(2), 1.0)]


def test_step_and_epoch_are_those_of_the_newest_point_whatever_its_metric() -> None:
    newest = point(1.5, "a", 0.5, "val_loss", step=7, epoch=2.0)
    older = point(1.0, "a", 0.4, "loss", step=6, epoch=1.0)
    unknown = point(1.8, "a", 0.3, "kl", epoch=3.0)
    for points in ([older, newest, unknown], [newest, older, unknown], [unknown, newest, older]):
        a = after_a_sample(*points, *sample(2, "a"))
        assert (a.progress.step, a.progress.epoch) == (7, 3.0)


def test_how_long_it_trains_is_what_it_has_said_last() -> None:
    older = point(1.0, "a", 0.4, "loss", epoch=1.0, epoch_count=10)
    newer = point(1.5, "a", 0.5, "val_loss", epoch=2.0, epoch_count=20)
    newest = point(1.6, "a", 0.5, "loss", epoch=3.0)
    for points in ([older, newer, newest], [newest, newer, older]):
        a = after_a_sample(*points, *sample(2, "a"))
        assert a.progress.length == (20, "epoch")
        assert a.progress.epoch_cost is not None


def test_unknown_values_of_a_sample_are_unknown_in_the_history() -> None:
    rows = sample(2, "a", cpu_limit_cores=None, cpu_weight=float("nan"), state="paused")
    a = after_a_sample(*rows)
    assert (a.in_force.limits.keys() & {"cpus", "weight"}, a.use.threads) == (set(), None)
    assert a.in_force.state == "paused"


def test_a_sample_has_the_points_up_to_its_time() -> None:
    rows = [*sample(2, "a"), *sample(4, "a"), *sample(6, "a")]
    points = [point(second, "a", second) for second in (1, 2, 2.5, 5)]
    host, seen = begin(new(), *rows, *points), []
    for _ in range(3):
        read(host, 1)
        seen.append(losses(host.history.containers[A])[:])
    assert seen == [[1, 2], [1, 2, 2.5], [1, 2, 2.5, 5]]


def test_points_before_a_container_s_start_are_not_its_own() -> None:
    rows = sample(4, "a", started_at=at(2))
    points = [point(1, "a", 9.0), point(2, "a", 2.0), point(3, "a", 3.0)]
    assert losses(after_a_sample(*rows, *points)) == [2.0, 3.0]


def test_samples_recorded_at_once_are_those_recorded_one_by_one() -> None:
    rows = [row for second in (2, 4, 6) for row in sample(second, "a", "b")]
    rows += [point(second, "a", second) for second in (1, 3, 5)]
    slow, fast = begin(new(), *rows), begin(new(), *rows)
    read(slow, 3)
    for _ in range(3):
        fast.next_sample(introduce)
    fast.record()
    fast.history.queue = slow.history.queue
    assert fast.history == slow.history


def test_each_container_has_its_own_limits_and_its_newest_name() -> None:
    rows = [
        node(2),
        container(2, "a", 1.0, cpu_limit_cores=0.5),
        container(2, "b", 1.0, cpu_limit_cores=1.0, container_name=None),
        node(4),
        container(4, "a", 2.0, cpu_limit_cores=0.75, container_name="new"),
        container(4, "b", 2.0, cpu_limit_cores=1.0, container_name=None),
    ]
    host = begin(new(), *rows)
    for name, cpus in (("a", 0.5), ("new", 0.75)):
        read(host, 1)
        containers = host.history.containers.values()
        found = [(one.name, one.in_force.limits.get("cpus")) for one in containers]
        assert found == [(name, cpus), (B[:12], 1.0)]


def test_samples_reached_are_recorded_before_other_containers_run_and_at_the_end() -> None:
    rows = [*sample(2, "a"), *sample(4, "a", "b"), *sample(6, "a", "b")]
    host = begin(new(Requirements(interval_s=10.0)), *rows, point(1, "a", 1.0), point(5, "a", 0.5))
    for _ in range(3):
        host.next_sample(introduce)
    a = host.history.containers[A]
    assert [time for time, _ in a.use.samples] == [micros(2)]
    host.end()
    assert losses(a)[-1] == 0.5
    assert a.use.samples[-1] == (micros(6), 3.0)


def test_at_the_end_of_a_table_containers_in_no_round_keep_their_newest_sample() -> None:
    host = begin(new(), *sample(2, "a"), *sample(4, "a"), *sample(6, "a"))
    read(host, 3)
    assert len(host.history.containers[A].use.samples) == 3
    host.end()
    assert host.history.containers[A].use.samples == [(micros(6), 3.0)]


# Containers that come, leave and restart


def test_a_container_that_has_left_is_dropped_and_a_new_one_arrives() -> None:
    host = begin(new(), *sample(2, "a"), *sample(4, "b"))
    read(host, 2)
    assert list(host.history.containers) == [B]
    assert host.history.containers[B].arrived == micros(4)


def test_a_container_that_a_sample_lacks_is_known_again_by_the_next_one() -> None:
    seen = [sample(second, "a", thread_count=2) for second in (2, 6)]
    host = begin(new(), *seen[0], node(4), *seen[1])
    for _ in range(3):
        read(host, 1)
        host.record()
    assert host.history.containers[A].arrived == micros(6)
    assert host.history.containers[A].use.threads == 2


def test_a_restarted_container_begins_anew() -> None:
    rows = [
        *sample(2, "a", "b"),
        point(1, "a", 9.0),
        point(3, "a", 8.0),
        point(3.7, "a", 1.0),
        node(4),
        container(4, "a", 0.1, started_at=at(3.5)),
        container(4, "b", 2),
    ]
    host = begin(new(), *rows)
    read(host, 1)
    host.history.containers[A].managed = True
    host.history.decision.allocations = {A: Allocation(0.5, "-", ""), B: Allocation(0.5, "-", "")}
    before = host.history.containers[A].run_id
    read(host, 1)
    a = host.history.containers[A]
    assert (a.arrived, a.use.samples, losses(a)) == (micros(4), [(micros(4), 0.1)], [1.0])
    assert a.run_id != before
    assert a.managed  # an earlier run had a share: its weight may still be that of a waiting job
    assert list(host.history.decision.allocations) == [B]


# Samples at which nothing happens


def test_a_sample_at_which_nothing_happens_is_uneventful() -> None:
    host = begin(new(), *sample(2, "a"), *sample(4, "a"), *sample(6, "a", "b"))
    assert not host.is_next_uneventful()  # a arrives
    read(host, 1)
    assert host.is_next_uneventful()
    read(host, 1)
    assert not host.is_next_uneventful()  # b arrives


def test_the_first_and_second_progress_of_a_job_are_events() -> None:
    rows = [row for second in range(2, 14, 2) for row in sample(second, "a")]
    losses = (point(4.5, "a", 1.0), point(7, "a", 0.9), point(9, "a", 0.8))
    host = begin(new(), *rows, *losses)
    uneventful = []
    for _ in range(6):
        uneventful.append(host.is_next_uneventful())
        read(host, 1)
    assert uneventful == [False, True, False, False, True, True]


def test_the_first_progress_is_an_event_at_its_very_time_and_in_a_later_table() -> None:
    rows = [row for second in (2, 4, 6, 8) for row in sample(second, "a", started_at=at(2))]
    host = begin(new(), *rows[:4])
    read(host, 1)
    host.end()
    begin(host, *rows[2:], point(1, "a", 9.0), point(6, "a", 1.0))
    uneventful = []
    for _ in range(3):
        uneventful.append(host.is_next_uneventful())
        read(host, 1)
    assert uneventful == [True, False, True]  # the point at 1 s is of an earlier run
    assert losses(host.history.containers[A]) == [1.0]


def test_a_point_at_the_start_of_a_container_is_its_own() -> None:
    rows = [*sample(2, "a", started_at=at(3)), *sample(4, "a", started_at=at(3))]
    host = begin(new(), *rows, point(3, "a", 1.0))
    read(host, 1)
    assert not host.is_next_uneventful()
    read(host, 1)
    assert losses(host.history.containers[A]) == [1.0]


@pytest.mark.parametrize("looks_at_targets", [True, False])
def test_a_met_target_is_an_event_where_the_policy_looks_at_targets(looks_at_targets) -> None:
    rows = [row for second in range(2, 14, 2) for row in sample(second, "a", labels=TARGETS)]
    values = {1: 1.0, 3: 0.9, 5: 0.5, 7: 0.4, 9: 0.1, 11: 0.05}
    points = [point(second, "a", value) for second, value in values.items()]
    host = begin(new(Requirements(targets=looks_at_targets)), *rows, *points)
    events, met = [], []
    for second in range(2, 14, 2):
        if not host.is_next_uneventful():
            events.append(second)
        if read(host, 1):
            met.append(second)
    assert events == ([2, 4, 6, 10] if looks_at_targets else [2, 4])  # first, second, met
    assert met == [6, 10]  # 0.5 meets the first target, 0.1 the final one
    a = host.history.containers[A]
    assert (a.progress.met_first, a.progress.met_final) == (micros(5), micros(9))


def test_a_round_and_a_turn_that_are_due_are_events() -> None:
    host = begin(new(Requirements(interval_s=10.0)), *sample(2, "a"), *sample(4, "a"))
    read(host, 1)
    timer = host.history.timer
    host.history.timer = timer.with_jobs(host.history.containers.values(), host.requirements)
    assert not host.is_next_uneventful()
    host.history.timer = timer
    host.history.queue = Queue(due=micros(4))
    assert not host.is_next_uneventful()
    host.history.queue = Queue(due=micros(4) + 1)
    assert host.is_next_uneventful()


def test_the_size_of_a_host_is_an_event_where_it_was_unknown() -> None:
    rows = [node(2) | {"cpu_count": None}, container(2, "a", 1.0), *sample(4, "a"), *sample(6, "a")]
    host = begin(new(), *rows)
    read(host, 1)
    assert host.history.cpus == 0
    assert not host.is_next_uneventful()
    read(host, 1)
    assert host.history.cpus == 2.0
    assert host.is_next_uneventful()


# From one table to the next


def test_a_table_ends_with_the_last_sample_that_was_reached() -> None:
    host = begin(new(), *sample(2, "a"), *sample(4, "a"), point(1, "a", 1.0), point(3, "a", 3.0))
    read(host, 1)
    assert host.end() == micros(2)
    assert losses(host.history.containers[A]) == [1.0]
    begin(host, point(3, "a", 3.0), *sample(4, "a", "b"), *sample(6, "a", "b"))
    read(host, 2)
    assert losses(host.history.containers[A]) == [1.0, 3.0]
    assert host.end() == micros(6)
    assert host.history.containers[B].arrived == micros(4)
    assert begin(host, point(7, "a", 7.0)).end() is None


def test_a_clone_goes_on_and_leaves_the_host_as_it_is() -> None:
    host = begin(new(), *sample(2, "a"))
    read(host, 1)
    host.end()
    twin = begin(copied(host), point(3, "a", 3.0), *sample(4, "a"))
    read(twin, 1)
    assert twin.history.sampled_at == micros(4)
    assert losses(twin.history.containers[A]) == [3.0]
    assert host.history.sampled_at == micros(2)
    assert losses(host.history.containers[A]) == []
