"""DQoES, worked by hand: classes, what is taken and given, floors, and rounds to satisfaction."""

from collections.abc import Mapping
from itertools import chain

import pytest
from helpers.observed_rows import at, container, decisions_of, node, planner_of, point

from dltools.actions.plans import Plan
from dltools.observations.table import Row
from dltools.plan.outcome.decisions import JobDecision
from dltools.plan.policy.dqoes import DQOES, classify
from dltools.plan.realisation.options import Mode

QOE = '{{"dltools.qoe": "{}"}}'


def sample(
    number: int, models: dict[str, tuple[float, float, float]], cpus: float = 2.0
) -> list[Row]:
    """A sample, one each 10 s, of models with (target, response time, CPU seconds)."""
    made = [node(10 * number, cpus)]
    for name, (target, latency, used) in models.items():
        made.append(container(10 * number, name, used, labels=QOE.format(target)))
        made.append(point(10 * number, name, latency, "latency_seconds"))
    return made


def rows(latencies: dict[str, tuple[float, float]], samples: int = 1, begin: int = 0) -> list[Row]:
    """Samples 10 s apart of models with (target, response time)."""
    numbers = range(begin, begin + samples)
    made = [sample(n, {name: (*one, n) for name, one in latencies.items()}) for n in numbers]
    return [*chain(*made)]


def decided(made: list[Row], **given: object) -> Mapping[str, JobDecision]:
    return decisions_of(planner_of(made, DQOES, Mode.WEIGHT, **{"gain": "fixed", **given}))


def shares(made: list[Row], **given: object) -> dict[str, float]:
    found = {name: one.allocation.share for name, one in decided(made, **given).items()}
    return {name: round(share, 6) for name, share in found.items() if share is not None}


def plan(made: list[Row]) -> Plan:
    return planner_of(made, DQOES, gain="fixed").plan({})


@pytest.mark.parametrize(
    ("latency", "expected"),
    [(0.8, "G"), (0.9, "S"), (1.0, "S"), (1.09, "S"), (1.2, "B"), (None, "?")],
)
def test_the_classes_of_a_target_of_one_second(latency, expected) -> None:
    assert classify(1.0, latency, 0.10) == expected


def test_a_server_of_language_models_is_judged_by_its_time_per_token() -> None:
    made = rows({"a": (0.05, 0.025), "b": (0.05, 0.075)})
    for row in made:
        if row["kind"] == "progress":
            row["metric"] = "latency_token_seconds"
    made += [point(0, name, 40.0, "token_rate") for name in ("a", "b")]
    assert shares(made) == {"a": 0.45, "b": 0.55}
    assert "latency_token_seconds" in plan(made).actions[0].reason


def test_beta_of_a_fast_model_s_share_goes_to_a_slow_model() -> None:
    # L = 1/2 each; a has all of Q_G, so it gives 0.1 * 1/2 * 1.
    assert shares(rows({"a": (1.0, 0.5), "b": (1.0, 1.5)})) == {"a": 0.45, "b": 0.55}


def test_shares_are_taken_by_slack_and_given_by_need() -> None:
    # q: a 0.6, b 0.2, c -0.3, d -0.1; L = 1/4. Taken 0.1 * 0.25 * (0.75, 0.25) = 0.01875, 0.00625;
    # of the pool of 0.025 c gets 3/4, d 1/4.
    models = {"a": (1.0, 0.4), "b": (1.0, 0.8), "c": (1.0, 1.3), "d": (0.5, 0.6)}
    classes = {name: one.job_class for name, one in decided(rows(models)).items()}
    assert classes == {"a": "G", "b": "G", "c": "B", "d": "B"}
    assert shares(rows(models)) == {"a": 0.23125, "b": 0.24375, "c": 0.26875, "d": 0.25625}


def test_a_satisfied_model_keeps_its_share() -> None:
    models = {"a": (1.0, 0.5), "b": (1.0, 1.05), "c": (1.0, 2.0)}
    assert shares(rows(models))["b"] == round(1 / 3, 6)


def test_no_model_is_cut_below_half_an_equal_share() -> None:
    models = {"a": (1.0, 0.1), "b": (1.0, 9.0)}
    assert shares(rows(models, 12)) == {"a": 0.25, "b": 0.75}
    assert "nothing left to give" in decided(rows(models, 13))["b"].reason


def test_shares_become_more_equal_where_targets_are_out_of_reach() -> None:
    # a gives b 0.05; then both are under: each moves 0.1 of the way to the mean of 1/2.
    first = rows({"a": (1.0, 0.5), "b": (1.0, 1.5)})
    second = rows({"a": (1.0, 1.5), "b": (1.0, 1.5)}, 1, 1)
    assert shares([*first, *second]) == {"a": 0.455, "b": 0.545}
    assert "jointly out of reach" in decided([*first, *second])["a"].reason


def test_without_a_slow_model_no_share_changes() -> None:
    assert shares(rows({"a": (1.0, 0.5), "b": (1.0, 1.0)})) == {"a": 0.5, "b": 0.5}


def test_a_silent_model_keeps_its_share() -> None:
    made = rows({"a": (1.0, 0.5), "b": (1.0, 1.5)})
    made.append(node(10))
    made += [container(10, name, 1, labels=QOE.format(1.0)) for name in "ab"]
    made.append(point(10, "b", 1.0, "latency_seconds"))
    found = decided(made)
    assert (found["a"].job_class, round(found["a"].allocation.share or 0, 6)) == ("?", 0.45)
    assert "share kept" in found["a"].reason


def test_a_model_that_has_never_reported_its_response_time_takes_nothing_from_the_others() -> None:
    """As one whose label `dltools.metric` is misspelt, or a training with a target by mistake."""
    models = rows({"a": (1.0, 0.5), "b": (1.0, 1.5)})
    silent = [container(0, "c", 0, labels=QOE.format(1.0)), point(0, "c", 2.0)]
    found = decided([*models, *silent])
    assert found["c"].setting is None
    assert found["c"].reason == "no latency yet, only loss: left alone until it reports one"
    assert shares([*models, *silent]) == shares(models)
    label = '{"dltools.qoe": "1", "dltools.metric": "nosuch"}'
    silent = [container(0, "c", 0, labels=label), point(0, "c", 2.0, "latency_seconds")]
    assert shares([*models, *silent]) == shares(models)


def test_trainings_beside_models_are_left_alone() -> None:
    made = [*rows({"a": (1.0, 0.5), "b": (1.0, 1.5)}), container(0, "t", 0), point(0, "t", 1.0)]
    assert shares(made) == {"a": 0.45, "b": 0.55}
    assert decided(made)["t"].setting is None


def test_the_interval_doubles_while_all_are_satisfied_and_resets_when_one_leaves() -> None:
    good, bad = {"a": (1.0, 1.0), "b": (1.0, 1.0)}, {"a": (1.0, 1.0), "b": (1.0, 2.0)}
    assert plan(rows(good)).next_s == 10
    assert plan(rows(good, 2)).next_s == 20
    assert plan(rows(good, 4)).next_s == 40
    assert plan([*rows(good, 4), *rows(bad, 4, 4)]).next_s == 10


def test_a_new_model_gets_an_equal_share_and_all_are_scaled() -> None:
    made = rows({"a": (1.0, 0.5), "b": (1.0, 1.5)})
    with_c = {"a": (1.0, 1.0), "b": (1.0, 1.0), "c": (1.0, 1.0)}
    # 0.45 + 0.55 + 1/3, over 4/3.
    assert shares([*made, *rows(with_c, 1, 1)]) == {"a": 0.3375, "b": 0.4125, "c": 0.25}


def test_rounds_to_satisfaction_in_a_model_of_the_sample() -> None:
    """samples/serving: a request of w CPU seconds takes w/(L cpus) where it has L of the CPUs."""
    work = {"scanner": (0.050, 0.085), "keyboard": (0.100, 0.19), "meter": (0.075, 0.19),
            "mail": (0.154, 0.75), "archive": (0.202, 1.5)}  # fmt: skip
    share = dict.fromkeys(work, 1 / 5)
    rounds, made = 7, list[Row]()
    waiting = []
    for number in range(rounds + 3):
        latencies = {name: (o, w / (2 * share[name])) for name, (w, o) in work.items()}
        waiting.append(sum(p - o > 0.1 * o for o, p in latencies.values()))
        made += rows(latencies, 1, number)
        found = decided(made, itval=10, itval_max=10)
        share |= {name: v.allocation.share or 0 for name, v in found.items()}
    assert waiting.index(0) == rounds  # no request takes longer than asked from then on
    assert set(waiting[rounds:]) == {0}
    assert sum(share.values()) == pytest.approx(1)


# Direct gain: U of the host and a response time p need U p / o


def used_rows(models: dict[str, tuple[float, float, float]]) -> list[Row]:
    """Two samples on one CPU, of models with (target, response time, CPU seconds between them)."""
    begin = {name: (target, latency, 0.0) for name, (target, latency, _) in models.items()}
    return [*sample(0, begin, 1.0), *sample(1, models, 1.0)]


def direct(models: dict[str, tuple[float, float, float]]) -> dict[str, float]:
    return shares(used_rows(models), gain="direct")


def test_each_model_gets_what_its_response_time_asks_for() -> None:
    # a used 0.5 and is twice as fast as need be: 0.25; b is late by half of its target: 0.6. Half
    # of the host each brought b less: 0.25 and 0.75 in proportion, 0.85 together.
    found = direct({"a": (1.0, 0.5, 5.0), "b": (1.0, 1.5, 4.0)})
    assert found == {"a": pytest.approx(0.2125), "b": pytest.approx(0.6375)}


def test_a_satisfied_model_gets_what_it_needs_too() -> None:
    # Needs of 0.38 and 0.25. The last shares, 0.5 each, changed by the root of 0.95 and by 0.5.
    found = direct({"a": (1.0, 0.95, 4.0), "b": (1.0, 0.5, 5.0)})
    assert found == pytest.approx({"a": 0.63 * 0.48734 / 0.73734, "b": 0.63 * 0.25 / 0.73734}, 1e-4)


def test_weights_that_bring_small_models_more_than_their_part_are_corrected() -> None:
    """A weight brings its part to the power of 0.8; the targets ask for 0.94 of the host."""
    parts = {"a": 0.5, "b": 0.24, "c": 0.12, "d": 0.08}
    share, used = dict.fromkeys(parts, 0.25), dict.fromkeys(parts, 0.0)
    made: list[Row] = []
    for number in range(12):
        brought = {name: one**0.8 for name, one in share.items()}
        total = sum(brought.values())
        took = {name: parts[name] * total / one for name, one in brought.items()}
        for name, one in brought.items():
            used[name] += 10 * one / total if number else 0.0
        made += sample(number, {name: (1.0, took[name], used[name]) for name in parts}, 1.0)
        share = shares(made, gain="direct", itval=10, itval_max=10)
    assert took == pytest.approx(dict.fromkeys(parts, 0.94), rel=0.06)


def test_where_needs_are_a_little_more_than_the_host_all_are_a_little_late() -> None:
    # Needs of 0.6 and 0.45, 1.05 of the host: half of the way there, by roots of 1.2 and 0.9.
    found = direct({"a": (1.0, 1.2, 5.0), "b": (1.0, 0.9, 5.0)})
    assert found == pytest.approx({"a": 1.09545 / 2.04413, "b": 0.94868 / 2.04413}, 1e-4)


def test_the_cost_of_a_request_is_taken_over_five_intervals() -> None:
    # a answers in 1 s on half of the CPU, and in the last interval in 2 s on a quarter: 0.5 s of
    # the host each time. Chance made b's last interval slow: 0.25 s in the mean, not 0.5 s.
    used = {"a": (0.0, 5.0, 10.0, 12.5), "b": (0.0, 2.5, 5.0, 10.0)}
    took = {"a": (1.0, 1.0, 1.0, 2.0), "b": (1.0, 1.0, 1.0, 1.0)}
    models = [{name: (1.0, took[name][n], used[name][n]) for name in used} for n in range(4)]
    made = [row for n, one in enumerate(models) for row in sample(n, one, 1.0)]
    found = shares(made, gain="direct", itval=10, itval_max=10)
    # a: 12.5/30 of the host, 4/3 s; b: 10/30 of it, 1 s.
    assert sum(found.values()) == pytest.approx(0.556 + 0.333, abs=0.001)


def test_shares_stay_where_none_would_change_by_a_twentieth() -> None:
    assert direct({"a": (1.0, 1.0, 5.1), "b": (1.0, 1.0, 4.9)}) == {"a": 0.5, "b": 0.5}


def test_where_not_all_targets_can_be_met_the_smallest_needs_are() -> None:
    # Needs of 0.2, 0.6 and 0.9: the first two fit, but for the floor of 1/30 of the third.
    models = {"a": (1.0, 1.0, 2.0), "b": (1.0, 2.0, 3.0), "c": (1.0, 3.0, 3.0)}
    assert direct(models) == {"a": 0.2, "b": 0.6, "c": 0.2}
    found = decisions_of(planner_of(used_rows(models), DQOES, Mode.WEIGHT))
    assert "the targets of 1 are out of reach" in found["b"].allocation.reason


def test_no_model_gets_less_than_a_tenth_of_an_equal_share() -> None:
    # The last shares changed: 1/30, at least two thirds of the least, and 0.75; 0.65 together.
    found = direct({"a": (100.0, 0.5, 5.0), "b": (1.0, 1.5, 4.0)})
    assert found == {"a": 0.05, "b": pytest.approx(0.65 * 0.75 / (0.75 + 1 / 30))}


def test_a_model_of_unknown_response_time_keeps_its_share() -> None:
    made = [
        row
        for row in used_rows({"a": (1.0, 0.5, 5.0), "b": (1.0, 1.1, 4.0)})
        if row["kind"] != "progress" or row["container_name"] != "a" or row["time"] == at(0)
    ]
    # The first round knew no use of CPU: an equal share each. b needs 0.44.
    assert shares(made, gain="direct") == {"a": 0.5, "b": pytest.approx(0.44)}
