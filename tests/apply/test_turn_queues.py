"""Several queues at once: each keeps its own order, whatever happens in the others."""

from __future__ import annotations

import random

from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.apply.turn_order import Turn, TurnOrder, Use
from dltools.apply.turn_queues import TurnQueues
from dltools.plan.realisation.queue import Bound

CHECK_S = 0.25
QUEUES = ("", "GPU-1", "GPU-2")


def turn(name: str, group: int, queue: str = "", seconds: float = 2.0) -> Turn:
    return Turn(name, name, group, seconds, queue)


def running(queues: TurnQueues) -> set[str]:
    return {one.container_id for one in queues.turns if queues.may_run(one)}


def test_queues_run_side_by_side() -> None:
    queues = TurnQueues()
    queues.replace([turn("a", 0), turn("b", 1), turn("c", 0, "GPU-1", 3.0),
                    turn("d", 1, "GPU-1", 3.0), turn("e", 1, "GPU-1", 3.0)], 0.0)  # fmt: skip
    seen = []
    for step in range(1, 25):
        queues.look(step / 4, {}, None)
        seen.append("".join(sorted(running(queues))))
    assert list(dict.fromkeys(seen)) == ["ac", "bc", "bde", "ade"]
    assert queues.next_end(6.0) == 8.0


def test_what_containers_use_of_cpus_counts_in_the_queue_for_these_alone() -> None:
    """Nobody uses a CPU: on the CPUs each sleeps, and runs; on a GPU each waits for its turn."""
    queues = TurnQueues()
    queues.replace([turn(name, group, queue, 60.0) for queue, names in (("", "ab"), ("GPU-1", "cd"))
                    for group, name in enumerate(names)], 0.0)  # fmt: skip
    for step in range(1, 40):
        queues.look(step / 4, {name: Use(0.0, 0.0) for name in "abcd"}, step * 1.0)
    assert running(queues) == {"a", "b", "c"}


def test_a_container_has_one_turn_the_last_that_a_plan_gives_it() -> None:
    queues = TurnQueues()
    queues.replace([turn("a", 0), turn("b", 1), turn("a", 0, "GPU-1")], 0.0)
    assert [(one.container_id, one.queue) for one in queues.turns] == [("b", ""), ("a", "GPU-1")]
    assert running(queues) == {"a", "b"}


def test_a_queue_is_dropped_when_one_group_is_left() -> None:
    queues = TurnQueues()
    queues.replace([turn("a", 0), turn("b", 1), turn("c", 0, "GPU-1"), turn("d", 0, "GPU-1")], 0.0)
    assert {one.container_id for one in queues.drop_settled()} == {"c", "d"}
    queues.remove(turn("a", 0))
    assert [one.container_id for one in queues.drop_settled()] == ["b"]
    assert queues.turns == []
    assert queues.next_end(0.0) == float("inf")


@examples(15)
@given(seed=st.integers(0, 1 << 30), turn_s=st.floats(0.5, 60), gap_s=st.floats(2, 30))
def test_no_two_groups_of_a_queue_run_at_once_and_queues_are_independent(
    seed: int, turn_s: float, gap_s: float
) -> None:
    """Five minutes in which containers come and end in three queues. Each runs as it would alone,
    and nobody waits longer than the bound."""
    chance, queues = random.Random(seed), TurnQueues()
    alone = {queue: TurnOrder() for queue in QUEUES}
    members: dict[str, list[str]] = {queue: [] for queue in QUEUES}
    since: dict[str, float] = {}
    longest, count, now, most = 0.0, 0, 0.0, 2
    while now < 300:
        queue = chance.choice(QUEUES)
        if len(members[queue]) < 2 or (chance.random() < 0.6 and len(members[queue]) < 6):
            members[queue].insert(0, f"j{count}")
            count += 1
        else:
            gone = members[queue].pop(chance.randrange(len(members[queue])))
            found = queues.turn_of(gone)
            if found is not None:
                queues.remove(found)
            alone[queue].remove(gone)
            since.pop(gone, None)
        most = max(most, *(len(names) for names in members.values()))
        plan = [turn(name, group, one, turn_s) for one, names in members.items()
                for group, name in enumerate(names)]  # fmt: skip
        queues.replace(plan, now)
        for one, names in members.items():
            alone[one] = alone[one] if names else TurnOrder()
            alone[one].replace([each for each in plan if each.queue == one], now)
        for _ in range(round(chance.expovariate(1 / gap_s) / CHECK_S)):
            now += CHECK_S
            queues.look(now, {}, None)
            for order in alone.values():
                order.look(now, {})
            runs = running(queues)
            for one, names in members.items():
                assert len(runs & set(names)) == min(1, len(names))
                assert runs & set(names) == {name for name in names if alone[one].may_run(name)}
            for name in (name for names in members.values() for name in names):
                since[name] = now if name in runs else since.get(name, now)
                longest = max(longest, now - since[name])
    waits = [Bound(n).patience_s + n * (Bound(n).turn_s + CHECK_S) for n in range(1, most + 1)]
    assert longest <= max(waits) + max(Bound(n).turn_s for n in range(2, most + 1))
