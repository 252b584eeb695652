"""Who runs next: worked by hand, and over random arrivals, exits, plans, sleeps and lengths.

Several queues at once: each keeps its own order, whatever happens in the others.
"""

import math
import random
from dataclasses import dataclass, field

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.apply.turn_queues import TurnCircle, TurnQueues
from dltools.apply.turn_schedule import Bound, Turn, TurnOrder, Use

CHECK_S = 0.25


@dataclass
class World:
    """Containers on a machine, the order, and when each ran. `busy`, `others`: the CPUs that each
    and other programs would use; those that run share what there is in proportion."""

    cpus: float = math.inf
    others: float = 0.0
    idle_s: float | None = None
    order: TurnOrder = field(default_factory=TurnOrder)
    now: float = 0.0
    busy: dict[str, float] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    frozen_since: dict[str, float | None] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)
    bears: dict[str, float] = field(default_factory=dict)
    log: list[tuple[float, str]] = field(default_factory=list)

    def plan(self, *groups: list[str] | str, seconds: float | list[float] = 8.0) -> None:
        """Apply a plan: the groups in order."""
        turns = []
        for number, group in enumerate(groups):
            for name in [group] if isinstance(group, str) else group:
                length = seconds if isinstance(seconds, float) else seconds[number]
                bears = self.bears.get(name, math.inf)
                turns.append(Turn(name, name, number, length, longest_pause_s=bears))
                self.busy.setdefault(name, 2.0)
                self.used.setdefault(name, 0.0)
        for name in list(self.frozen_since):
            if name not in {turn.container_id for turn in turns}:
                del self.frozen_since[name]
        self.order.replace(turns, self.now)
        self._note()

    def end(self, name: str) -> None:
        self.order.remove(name)
        self.frozen_since.pop(name, None)

    def go(self, seconds: float) -> set[str]:
        """Let time pass, and return who runs then."""
        for _ in range(round(seconds / CHECK_S)):
            self.now += CHECK_S
            running = self.running()
            wanted = self.others + sum(self.busy[name] for name in running)
            for name in running:
                part = min(1.0, self.cpus / wanted) if wanted else 0.0
                self.used[name] += self.busy[name] * part * CHECK_S
            if self.idle_s is not None:
                self.idle_s += max(0.0, self.cpus - wanted) * CHECK_S
            uses = {
                name: Use(used, self.busy.get(name, 0.0) if name in running else None)
                for name, used in self.used.items()
            }
            self.order.look(self.now, uses, self.idle_s)
            self._note()
        return self.running()

    def running(self) -> set[str]:
        return {t.container_id for t in self.order.turns if self.order.may_run(t.container_id)}

    def _note(self) -> None:
        for turn in self.order.turns:
            name = turn.container_id
            if self.order.may_run(name):
                if self.frozen_since.get(name) is not None or name not in self.frozen_since:
                    self.log.append((self.now, name))
                self.frozen_since[name] = None
            else:
                since = self.frozen_since.get(name)
                since = self.now if since is None else since
                self.frozen_since[name] = since
                self.longest[name] = max(self.longest.get(name, 0.0), self.now - since)


def test_two_alternate_with_the_planned_lengths() -> None:
    world = World()
    world.plan("a", "b", seconds=[8.0, 4.0])
    world.go(36)
    assert world.log == [(0, "a"), (8, "b"), (12, "a"), (20, "b"), (24, "a"), (32, "b"), (36, "a")]


def test_nobody_is_paused_for_longer_than_it_bears_and_the_turns_go_on_as_ever() -> None:
    """Of four that take turns of 20 s, c bears 10.5 s: it runs for a second in between, and the
    others' turns begin when they would have begun."""
    world, plain = World(bears={"c": 10.5}), World()
    for one in (world, plain):
        one.plan("a", "b", "c", "d", seconds=20.0)
        one.go(400)
    assert 9 < world.longest["c"] <= 9.75
    others = [[entry for entry in one.log if entry[1] != "c"] for one in (world, plain)]
    assert others[0] == others[1]
    assert world.log[:4] == [(0, "a"), (9.5, "c"), (20, "b"), (20, "c")]
    assert {entry for entry in plain.log if entry[1] == "c"} <= set(world.log)


def test_many_that_bear_little_starve_nobody() -> None:
    world = World(bears=dict.fromkeys("abc", 2.0))
    world.plan("a", "b", "c", "d", seconds=8.0)
    world.go(400)
    assert max(world.longest[name] for name in "abc") <= 2
    assert world.longest["d"] <= 25


def test_after_a_newcomer_whoever_has_waited_longest_is_next() -> None:
    """Two jobs, and a new one every 9.5 s that runs for 3 s: the oldest was frozen for ever."""
    world = World()
    world.plan("a", "b")
    for number in range(9):
        world.go(9.5)
        newcomer = f"n{number}"
        world.plan(newcomer, "a", "b", seconds=[10.0, 8.0, 8.0])
        assert number % 2 or world.running() == {newcomer}
        world.go(3)
        world.end(newcomer)
        world.go(0.25)
        world.plan("a", "b")
    assert max(world.longest["a"], world.longest["b"]) < 35


def test_a_newcomer_does_not_cut_the_turn_that_follows_one() -> None:
    world = World()
    world.plan("a", "b")
    world.go(2)
    world.plan("c", "a", "b")
    assert world.running() == {"c"}
    assert world.go(8) == {"b"}
    world.go(1)
    world.plan("d", "c", "a", "b")
    assert world.running() == {"b"}
    assert world.go(7) == {"d"}


def test_whose_turn_was_cut_short_has_not_lost_it() -> None:
    world = World()
    world.plan("a", "b")
    world.go(10)  # b since 8
    world.plan("c", "a", "b")
    assert world.running() == {"c"}
    assert world.go(8) == {"a"}
    assert world.go(8) == {"b"}
    world.plan("d", "c", "a", "b")
    world.go(15)
    assert [name for _, name in world.log] == ["a", "b", "c", "a", "b", "d", "c"]


def test_who_sleeps_gives_its_turn_up_and_is_not_frozen() -> None:
    world = World(busy={"a": 0.0})
    world.plan("a", "b")
    assert world.go(2) == {"a", "b"}
    assert world.go(20) == {"a", "b"}


@pytest.mark.parametrize("others", [0.0, 10.0])
def test_who_wakes_is_next_when_the_turn_ends(others) -> None:
    """Also where other programs leave it a tenth of a CPU."""
    world = World(cpus=2.0, others=others, busy={"a": 0.0, "b": 1.0, "c": 1.0})
    world.plan("a", "b", "c")
    assert world.go(3) == {"a", "b"}
    world.busy["a"] = 1.0
    assert world.go(2) == {"b"}
    assert world.go(5) == {"a"}


def test_bursts_of_a_notebook_do_not_wake_it() -> None:
    world = World(busy={"a": 0.05})
    world.plan("a", "b", "c")
    world.go(60)
    assert world.longest.get("a", 0.0) == 0


def test_who_waits_for_cpus_that_other_programs_use_does_not_sleep() -> None:
    """Ten busy threads of others leave a container 0.17 of two CPUs: it took itself out of turn."""
    world = World(cpus=2.0, others=10.0)
    world.plan("a", "b")
    assert world.go(7) == {"a"}
    assert world.go(8) == {"b"}


def test_a_turn_that_leaves_a_cpu_idle_has_room_for_the_next_group() -> None:
    """c begins on one thread, and has two from the fourth second on: a has room until then."""
    world = World(cpus=2.0, idle_s=0.0, busy={"c": 1.0})
    world.plan("a", "b")
    world.go(8)
    world.plan("c", "a", "b", seconds=10.0)
    assert world.running() == {"c"} or world.running() == {"b"}
    while world.running() != {"c"}:
        world.go(0.25)
    assert world.go(1.25) == {"c", "a"}
    world.plan("c", "b", "a", seconds=10.0)  # a plan in between changes nothing
    assert world.running() == {"c", "a"}
    world.busy["c"] = 2.0
    assert world.go(0.25) == {"c"}
    world.busy["c"] = 1.0
    assert world.go(3) == {"c"}  # it has needed the room itself in this turn
    assert world.go(6) == {"a"}  # to run beside was no turn


def test_groups_join_until_no_cpu_is_idle() -> None:
    world = World(cpus=8.0, idle_s=0.0, busy=dict.fromkeys("abcdef", 2.0))
    world.plan(*"abcdef", seconds=60.0)
    assert world.go(10) == set("abcd")


def test_nobody_joins_where_use_or_idle_time_is_unknown() -> None:
    world = World(cpus=4.0, busy={"a": 1.0})
    world.plan("a", "b", seconds=20.0)
    assert world.go(5) == {"a"}


def test_the_only_one_awake_runs_on() -> None:
    world = World(busy={"a": 0.0, "b": 0.0})
    world.plan("a", "b", "c")
    world.go(60)
    assert world.longest.get("c", 0.0) < 5
    assert world.running() == {"a", "b", "c"}


def test_without_counters_turns_are_as_planned() -> None:
    order = TurnOrder()
    order.replace([Turn("a", "a", 0, 2.0), Turn("b", "b", 1, 2.0)], 0.0)
    for step in range(1, 9):
        order.look(step / 4, {})
    assert [order.may_run("a"), order.may_run("b")] == [False, True]


def test_a_turn_ends_for_one_that_has_waited_too_long() -> None:
    """A plan may ask for turns of an hour."""
    world = World()
    world.plan("a", "b", seconds=3600.0)
    world.go(400)
    bound = Bound(2)
    assert max(world.longest.values()) <= bound.patience_s + 2 * bound.turn_s


@examples(25)
@given(
    seed=st.integers(0, 1 << 30),
    gap_s=st.floats(1, 20),
    turn_s=st.floats(0.5, 120),
    life_s=st.floats(2, 200),
    first=st.integers(2, 6),
)
@pytest.mark.slow
def test_nobody_waits_past_the_bound_whatever_happens(seed, gap_s, turn_s, life_s, first) -> None:
    """Ten minutes in which containers come, end, sleep and wake, and each plan regroups them."""
    world = World(cpus=2.0, idle_s=0.0) if seed % 2 else World()
    chance, count, most = random.Random(seed), first, first
    groups = [[f"j{number}"] for number in range(first)]
    world.plan(*groups, seconds=turn_s)
    while world.now < 600:
        world.go(chance.expovariate(1 / min(gap_s, 4)))
        names = [turn.container_id for turn in world.order.turns]
        happens = chance.random()
        if happens < 4 / gap_s:
            name, count = f"j{count}", count + 1
            world.busy[name] = chance.choice([0.0, 0.05, 0.3, 1.0, 2.0])
            groups = [[name], *groups]
        if names and chance.random() < 4 * len(names) / life_s / first:
            gone = chance.choice(names)
            world.end(gone)
            groups = [[name for name in group if name != gone] for group in groups]
        if names and chance.random() < 0.3:
            world.busy[chance.choice(names)] = chance.choice([0.0, 0.05, 1.0, 2.0])
        if chance.random() < 0.3:
            every = [name for group in groups for name in group]
            chance.shuffle(every)
            size = chance.randint(1, 3)
            groups = [every[at : at + size] for at in range(0, len(every), size)]
        groups = [group for group in groups if group]
        most = max(most, len(groups))
        world.plan(*groups, seconds=turn_s)
    # Before it are the present turn and all groups that are overdue too; checks take a moment.
    bound = max(
        Bound(n).patience_s + n * (Bound(n).turn_s + CHECK_S) for n in range(1, most + 1)
    ) + max(Bound(n).turn_s for n in range(2, most + 1))
    assert max(world.longest.values(), default=0.0) <= bound
    if world.idle_s is not None:
        return
    world.go(1)
    busy = {name for name in world.running() if world.busy[name] >= 1}
    assert len({turn.group for turn in world.order.turns if turn.container_id in busy}) <= 1


QUEUES = ("", "GPU-1", "GPU-2")


def turn(name: str, group: int, queue: str = "", seconds: float = 2.0) -> Turn:
    return Turn(name, name, group, seconds, queue)


def running(queues: TurnQueues) -> set[str]:
    return {one.container_id for one in queues.turns if queues.may_run(one)}


def test_queues_run_side_by_side() -> None:
    queues = TurnQueues()
    queues.replace(
        [
            turn("a", 0),
            turn("b", 1),
            turn("c", 0, "GPU-1", 3.0),
            turn("d", 1, "GPU-1", 3.0),
            turn("e", 1, "GPU-1", 3.0),
        ],
        0.0,
    )
    seen = []
    for step in range(1, 25):
        queues.look(step / 4, {}, None)
        seen.append("".join(sorted(running(queues))))
    assert list(dict.fromkeys(seen)) == ["ac", "bc", "bde", "ade"]
    assert queues.next_end(6.0) == 8.0


def test_what_containers_use_of_cpus_counts_in_the_queue_for_these_alone() -> None:
    """Nobody uses a CPU: on the CPUs each sleeps, and runs; on a GPU each waits for its turn."""
    queues = TurnQueues()
    queues.replace(
        [
            turn(name, group, queue, 60.0)
            for queue, names in (("", "ab"), ("GPU-1", "cd"))
            for group, name in enumerate(names)
        ],
        0.0,
    )
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


def alone_in(queue: str) -> TurnOrder | TurnCircle:
    """A queue that knows of no other."""
    return TurnCircle() if queue else TurnOrder()


def look_alone(queue: TurnOrder | TurnCircle, now: float) -> None:
    if isinstance(queue, TurnOrder):
        queue.look(now, {})
    else:
        queue.look(now)


@examples(15)
@given(seed=st.integers(0, 1 << 30), turn_s=st.floats(0.5, 60), gap_s=st.floats(2, 30))
def test_no_two_groups_of_a_queue_run_at_once_and_queues_keep_apart(seed, turn_s, gap_s) -> None:
    """Five minutes in which containers come and end in three queues. Each runs as it would alone,
    and nobody waits longer than the bound; for a GPU than for one turn of each other."""
    chance, queues = random.Random(seed), TurnQueues()
    alone = {queue: alone_in(queue) for queue in QUEUES}
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
        plan = [
            turn(name, group, one, turn_s)
            for one, names in members.items()
            for group, name in enumerate(names)
        ]
        queues.replace(plan, now)
        for one, names in members.items():
            alone[one] = alone[one] if names else alone_in(one)
            alone[one].replace([each for each in plan if each.queue == one], now)
        for _ in range(round(chance.expovariate(1 / gap_s) / CHECK_S)):
            now += CHECK_S
            queues.look(now, {}, None)
            for order in alone.values():
                look_alone(order, now)
            runs = running(queues)
            for one, names in members.items():
                assert len(runs & set(names)) == min(1, len(names))
                assert runs & set(names) == {name for name in names if alone[one].may_run(name)}
            for name in (name for names in members.values() for name in names):
                since[name] = now if name in runs else since.get(name, now)
                longest = max(longest, now - since[name])
    waits = [Bound(n).patience_s + n * (Bound(n).turn_s + CHECK_S) for n in range(1, most + 1)]
    on_cpus = max(waits) + max(Bound(n).turn_s for n in range(2, most + 1))
    assert longest <= max(on_cpus, (most - 1) * turn_s + CHECK_S)


def shared(*parts: float, period_s: float = 1.0, longest_s: float = math.inf) -> TurnCircle:
    """Groups that have these parts of a period each."""
    circle = TurnCircle()
    circle.replace(
        [
            Turn(f"j{n}", f"j{n}", n, part * period_s, "GPU-1", longest_s, period_s)
            for n, part in enumerate(parts)
        ],
        0.0,
    )
    return circle


def run_together(circle: TurnCircle, until: float, step: float = 0.001) -> list[set[str]]:
    found = []
    for number in range(round(until / step)):
        circle.look((number + 0.5) * step)
        found.append({one.container_id for one in circle.turns if circle.may_run(one.container_id)})
    return found


@examples(30)
@given(parts=st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6))
def test_each_has_its_part_and_as_few_as_can_be_run_at_once(parts) -> None:
    looks = run_together(shared(*parts), 3.0)
    for n, part in enumerate(parts):
        assert sum(f"j{n}" in look for look in looks) / len(looks) == pytest.approx(part, abs=0.01)
    counts = {len(look) for look in looks}
    total = math.fsum(parts)
    assert counts <= {math.floor(total + 1e-6), math.ceil(total - 1e-6)}


def test_the_time_without_a_turn_lies_between_the_turns() -> None:
    looks = run_together(shared(0.2, 0.2), 1.0, 0.1)
    seen = ["".join(sorted(look)) for look in looks]
    assert seen == [*["j0"] * 2, *[""] * 3, *["j1"] * 2, *[""] * 3]


def test_the_next_edge_is_known() -> None:
    circle = shared(0.7, 0.3)
    for now, end in ((0.0, 0.7), (0.5, 0.7), (0.7, 1.0), (5.2, 5.7)):
        circle.look(now)
        assert circle.ends == pytest.approx(end)
    assert shared(1.0).ends == math.inf
    assert (shared(1.0, 1.0).is_settled, shared(0.5).is_settled) == (True, False)


def test_who_has_a_turn_goes_on_when_turns_change_and_new_ones_follow() -> None:
    circle = shared(0.5, 0.5)
    circle.look(10.6)
    turns = [Turn(f"j{n}", f"j{n}", 2 - n, 0.4, "GPU-1", math.inf, 1.2) for n in range(3)]
    circle.replace(turns, 10.6)  # j1 has had its turn for 0.1 s
    seen = {10.8: "j1", 10.95: "j0", 11.35: "j2", 11.75: "j1"}
    for now, name in seen.items():
        circle.look(now)
        assert [one.name for one in circle.turns if circle.may_run(one.container_id)] == [name]


def test_who_comes_while_the_last_has_its_turn_goes_before_nobody_that_waits() -> None:
    """Every turn of 10 s somebody new comes, and somebody ends: the first waited for ever."""
    circle, longest, since = TurnCircle(), 0.0, 0.0
    for step in range(160):
        now = step / 2
        if step % 20 == 0:
            names = ["old", *(f"j{step // 20 - back}" for back in (0, 1) if step // 20 >= back)]
            circle.replace([Turn(n, n, g, 10.0, "GPU-1") for g, n in enumerate(names)], now)
        circle.look(now)
        since = now if circle.may_run("old") else since
        longest = max(longest, now - since)
    assert longest <= 20


def test_nobody_is_paused_for_longer_than_it_bears() -> None:
    circle = TurnCircle()
    bears = {"a": 5.0, "b": math.inf}
    circle.replace([Turn(k, k, n, 20.0, "GPU-1", bears[k]) for n, k in enumerate("ab")], 0.0)
    longest = paused = 0.0
    for step in range(800):
        circle.look(step / 10)
        paused = 0.0 if circle.may_run("a") else paused + 0.1
        longest = max(longest, paused)
    assert 4.0 < longest <= 5.0
