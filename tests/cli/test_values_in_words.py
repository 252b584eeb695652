"""Values in words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dltools.cli.values_in_words import (
    changes_in_words,
    clip,
    cpu_use,
    gist,
    limits,
    listed_cpus,
    settings_in_words,
    size,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "a…d"),
        ("team-job-12", 8, "tea…b-12"),
        ("a\x1b[31m", 9, "a?[31m"),
        ("深度学习", 5, "深…习"),
    ],
)
def test_a_name_is_clipped(name, width, expected) -> None:
    assert clip(name, width) == expected


def counter(second: float, used: float | None, began: float = -60) -> dict[str, Any]:
    return {
        "time": NOON + timedelta(seconds=second),
        "cpu_seconds": used,
        "started_at": NOON + timedelta(seconds=began),
    }


@pytest.mark.parametrize(
    ("before", "row", "expected"),
    [
        (counter(0, 10), counter(2, 13), "1.50"),
        (counter(0, 10), counter(2, 9.99), "0.00"),  # a counter that wavers
        (counter(0, 10), counter(4, 3, began=2), "1.50"),  # another start: its own counter
        (counter(0, None), counter(0, 30), "0.50"),
        (None, counter(0, -0.001), "0.00"),
        (counter(0, 10), counter(0, 10), "-"),
        (None, counter(0, None), "-"),
    ],
)
def test_cores_are_never_less_than_none(before, row, expected) -> None:
    assert cpu_use(row, before) == expected


def test_sizes_have_three_digits() -> None:
    sizes = [size(number) for number in (None, 0, 999, 1000, 1 << 20)]
    assert sizes == ["-", "0 B", "999 B", "0.977 KiB", "1 MiB"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "-"),
        ({"cpu_limit_cores": 4.0}, "-"),  # all CPUs of the host
        ({"cpu_limit_cores": 0.5}, "0.5"),
        ({"cpu_weight": 1024.0}, "-"),
        ({"cpu_weight": 10.0, "cpuset": "0-1"}, "weight 10, CPUs 0-1"),
        ({"cpuset": "0-3"}, "-"),
        ({"state": "paused", "turn_seconds": 2.0}, "paused, turns 2 s"),
        ({"turn_seconds": 2.0, "turn_queue": "GPU-8a56a4bc-1"}, "turns 2 s on GPU-8a56a4bc"),
    ],
)
def test_limits_are_what_holds_a_container(changes, words) -> None:
    row = {"state": "running", "cpu_limit_cores": None} | changes
    assert limits(row, 4.0, 0) == words


def test_the_cpus_of_all_lists_are_counted_once() -> None:
    assert listed_cpus([{"cpuset": "0-1"}, {"cpuset": "1,5"}, {"cpuset": None}, {}]) == 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "-"),
        ({"cpus": None, "weight": 1024, "state": "running"}, "no limit"),
        ({"cpus": 1.5, "weight": 300, "memory": 1 << 30}, "1.5 cpus, weight 300, 1 GiB"),
        ({"state": "paused", "turn_s": 2.0, "group": 0}, "paused, turn 1, 2 s"),
        ({"turn_s": 2.0, "cpuset": "0,2"}, "turns of 2 s, on CPUs 0,2"),
        ({"turn_s": 2.0, "group": 1, "queue": "GPU-8a56a4bc-1"}, "turn 2, 2 s on GPU-8a56a4bc"),
        ({"turn_s": 2.0, "queue": "\x1b[31m"}, "turns of 2 s on ?[31m"),
    ],
)
def test_settings_are_said_without_their_defaults(settings, words) -> None:
    assert settings_in_words(settings) == words


def test_defaults_that_change_are_said() -> None:
    settings = {"cpus": None, "weight": 1024, "cpuset": None}
    assert changes_in_words(settings, {"cpus": 1, "weight": 2, "cpuset": "0"}) == (
        "no quota, weight 1024, on all CPUs",
        "1 cpus, weight 2, on CPUs 0",
    )
    assert changes_in_words({}, {"cpus": None}) == ("-", "no quota")


def test_changes_are_what_differs_or_everything() -> None:
    before = {"cpus": None, "weight": 1024}
    assert changes_in_words(before, {"cpus": 0.5, "weight": 1024}) == ("no quota", "0.5 cpus")
    assert changes_in_words(before, before) == ("no limit", "no limit")


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("2 of 3: epoch 602 of 5000: 45.3 CPU s left", "2 of 3"),
        ("growing: efficiency 0.2; 2 of 3 in the queue", "2 of 3 in the queue"),
        ("equal share of 3; 5.333 s of every cycle", "equal share of 3"),
        ("", ""),
    ],
)
def test_the_gist_of_a_reason(reason, said) -> None:
    assert gist(reason) == said
