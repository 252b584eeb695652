"""Turns in which the other jobs are paused, worked by hand."""

from __future__ import annotations

from collections.abc import Mapping

from helpers.shared_hosts import host, job, settings_of

from dltools.labels import Role
from dltools.observations.roles import Judgement
from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.realisation.mode import Mode, ModeChoice
from dltools.plan.realisation.realise import realise
from dltools.plan.realisation.settings import Settings


def turns(settings: Mapping[str, Settings]) -> dict[str, tuple[int, float]]:
    """The group of each that takes turns, and the length of its turn."""
    return {key: (one["group"], one["turn_s"]) for key, one in settings.items()}


def test_rotate_packs_groups_and_gives_turns_by_shares() -> None:
    jobs = [job("a", 2), job("b", 1), job("c", 1)]
    found = realise(
        ModeChoice(Mode.ROTATE, "", 2.0), host(*jobs, shares={"a": 0.75, "b": 0.2, "c": 0.05})
    )
    assert found.takes_turns
    assert turns(found.settings) == {"a": (0, 3.0), "b": (1, 1.0), "c": (1, 1.0)}
    assert {one["cpu_weight"] for one in found.settings.values()} == {1024}


def test_no_turn_is_shorter_than_a_tenth_of_the_quantum() -> None:
    jobs = [job("a", 2), job("b", 2)]
    found = settings_of(Mode.ROTATE, host(*jobs, shares={"a": 0.999, "b": 0.001}))
    assert found["b"]["turn_s"] == 0.8


def test_no_job_takes_turns_where_all_fit() -> None:
    found = settings_of(Mode.ROTATE, host(job("a"), job("b"), shares={"a": 0.5, "b": 0.5}))
    assert found == {key: {"cpu_weight": 1024} for key in "ab"}


def test_turns_are_in_proportion_to_the_shares_of_those_that_take_turns() -> None:
    # 0.4 of 0.5 of two turns of 8 s.
    jobs = [job("a", 2), job("b", 2)]
    found = settings_of(Mode.ROTATE, host(*jobs, shares={"a": 0.4, "b": 0.1}))
    assert [found[name]["turn_s"] for name in "ab"] == [12.8, 3.2]


def test_a_new_job_comes_first_until_it_has_reported_twice() -> None:
    jobs = [job("a", 2), job("b", 2, arrived=1)]
    jobs[1].reports = 1
    found = host(*jobs, shares={"a": 0.5, "b": 0.5})
    assert turns(settings_of(Mode.ROTATE, found)) == {"b": (0, 10.0), "a": (1, 8.0)}
    jobs[1].samples = [(0, 10.0)]  # it has had its CPU seconds
    assert turns(settings_of(Mode.ROTATE, found))["b"] == (1, 8.0)


def silent(name: str, arrived: int = 0, had_s: float = 10.0) -> ContainerHistory:
    """A training that has reported nothing, and has had its time to explore."""
    made = ContainerHistory(name, name, "h", arrived, threads=2)
    made.observe(Judgement(Role.TRAINING, "libtorch in its processes, silent"))
    made.samples = [(0, had_s)]
    return made


def test_silent_trainings_queue_by_weights_beside_the_turns() -> None:
    # Two groups take turns. Three silent ones: one at a time beside them, as much as all had.
    known = host(job("a", 2), job("b", 2), shares={"a": 0.5, "b": 0.5})
    three = [silent(name) for name in ("s", "t", "u")]
    found = realise(ModeChoice(Mode.ROTATE, ""), known, silent=three)
    assert {key: one["cpu_weight"] for key, one in found.settings.items() if key in "stu"} == {
        "s": 1024.0, "t": 10.0, "u": 2.0,
    }  # fmt: skip
    assert {key: one["group"] for key, one in found.settings.items() if key in "ab"} == {
        "a": 0, "b": 1,
    }  # fmt: skip
    assert found.notes["t"].startswith("competes all the same; never paused before it reports")
    # Later each of them is the first one.
    first = set()
    queue = found.queue
    for seconds in range(0, 40, 5):
        found = realise(ModeChoice(Mode.ROTATE, ""), known, silent=three, queue=queue,
                        now=seconds * 1_000_000)  # fmt: skip
        queue = found.queue
        weights = {key: found.settings[key]["cpu_weight"] for key in "stu"}
        first |= {key for key, weight in weights.items() if weight == 1024.0}
    assert first == {"s", "t", "u"}


def test_a_single_silent_training_gets_an_equal_part_beside_the_turns() -> None:
    known = host(job("a", 2), job("b", 2), shares={"a": 0.5, "b": 0.5})
    found = realise(ModeChoice(Mode.ROTATE, ""), known, silent=[silent("s")])
    assert found.settings["s"] == {"cpu_weight": 512.0}


def test_a_job_that_waited_by_weights_gets_its_weight_back_for_its_turn() -> None:
    jobs = [job("a", 2), job("b", 2)]
    for one, weight in zip(jobs, (1024.0, 2.0), strict=True):
        one.weight = weight
    found = realise(ModeChoice(Mode.ROTATE, ""), host(*jobs, shares={"a": 0.5, "b": 0.5}))
    assert found.settings["b"] == {"cpu_weight": 1024, "group": 1, "turn_s": 8.0}
