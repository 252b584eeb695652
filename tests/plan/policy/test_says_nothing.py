"""What each policy makes of metrics that say nothing, or nothing any more: worked by hand.

A sample each 10 s of two equal jobs of one thread, one core each; `a` learns. Three reports of each
metric come before each sample but the first, so that each interval of 10 s has three.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence

import pytest
from helpers.examples import examples, some_of
from helpers.observed_rows import container, decisions_of, node, planner_of, point
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.table import Row
from dltools.plan.policy import registry
from dltools.plan.policy.interface import Allocation
from dltools.plan.realisation.options import Mode
from dltools.plan.signals import evaluation_metric

NAN = math.nan
ALL = ("flowcon", "specon", "srtf", "slaq", "tradl", "las", "fair", "dqoes", "noop")
JUDGING = ("flowcon", "specon", "srtf", "slaq", "tradl")
Values = Mapping[str, Sequence[float]]


def learning(many: int = 30) -> list[float]:
    """A loss that falls from 3 towards 1, half of the way in ten reports."""
    return [1 + 2 * 0.5 ** (number / 10) for number in range(many)]


def wave(base: float, rise: float, many: int = 30, size: float = 1.0) -> list[float]:
    """Values that go up and down about a line: 0, +, 0, - and so on."""
    return [base + rise * k + size * (0, 1, 0, -1)[k % 4] for k in range(many)]


def rows(values: Values, labels: Mapping[str, str] | None = None) -> list[Row]:
    """Job `a` learns; job `b` reports these values, as many of each metric."""
    many = max(map(len, values.values()))
    reported: dict[str, Values] = {"a": {"loss": learning(many)}, "b": values}
    made: list[Row] = []
    for number in range(many // 3 + 1):
        now = number * 10.0
        made.append(node(now))
        for name, of in reported.items():
            more = {"labels": json.dumps(labels)} if labels and name == "b" else {}
            made.append(container(now, name, now, thread_count=1, **more))
            for k in range(3 * number - 3, 3 * number) if number else ():
                second = 10 * (k / 3) + 2
                made += [
                    point(second, name, series[k], metric, step=k)
                    for metric, series in of.items()
                    if k < len(series)
                ]
    return sorted(made, key=lambda row: row["time"])


def allocation(
    name: str, values: Values, labels: Mapping[str, str] | None = None, **given_: object
) -> Allocation:
    """What a policy gives `b` at the last sample."""
    if name not in ("fair", "noop"):
        given_ = {"itval": 10, **({"alpha": 0.003} if name == "flowcon" else {}), **given_}
    planner = planner_of(rows(values, labels), registry.get(name, []), Mode.WEIGHT, **given_)
    return decisions_of(planner)["b"].allocation


# Never finite, for a while, or no longer


VERDICTS = {"flowcon": "NL", "specon": "PC", "srtf": "known", "slaq": "-", "tradl": "P1"}
"""The class of a job that learns, in each policy that looks; its target is within reach."""
GUESSED = {**VERDICTS, "srtf": "guessed"}
"""The class of one whose growth is unknown."""
TARGET = {"dltools.metric": "loss", "dltools.target": "1.2"}


def warm_up(many: int = 30) -> list[float]:
    return [2.0 + 0.1 * k for k in range(many)]


LEARNS: dict[str, Values] = {
    "beside an accuracy that was never finite": {"val_accuracy": [NAN] * 30, "loss": learning()},
    "beside an accuracy that is lost": {"val_accuracy": [0.5] * 5 + [NAN] * 25, "loss": learning()},
    "some reports are not finite": {
        "loss": [NAN if k % 5 == 3 else value for k, value in enumerate(learning())]
    },
    "after a warm-up": {"loss": [*warm_up(6), *learning(24)]},
}


@pytest.mark.parametrize("name", JUDGING)
@pytest.mark.parametrize("values", LEARNS.values(), ids=LEARNS)
def test_a_job_whose_loss_falls_is_judged_by_it(name, values) -> None:
    found = allocation(name, values, TARGET if name == "tradl" else {})
    assert found.job_class == VERDICTS[name]
    assert found.rank == 0 or name == "srtf"  # which ranks all jobs
    assert not re.search("val_accuracy|diverged|warm-up", found.reason)
    assert "loss" in found.reason


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("label", ["dltools.metric", "dltools.target"])
def test_a_label_s_metric_that_is_never_finite_is_as_one_that_never_appears(name, label) -> None:
    labels = {"dltools.metric": "f1", label: "0.9" if label == "dltools.target" else "f1"}
    values = {"loss": learning()}
    found = allocation(name, {**values, "f1": [NAN] * 30}, labels)
    assert found == allocation(name, values, labels)


@pytest.mark.parametrize("name", JUDGING)
def test_the_growth_of_a_job_that_was_never_finite_is_unknown(name) -> None:
    found = allocation(name, {"loss": [NAN] * 30})
    assert found.job_class == ("P2" if name == "tradl" else GUESSED[name])  # it has no target
    assert "diverged" not in found.reason


FINITE = st.floats(-1e3, 1e3)
METRICS = st.sampled_from(["loss", "val_loss", "accuracy", "reward", "loss_d", "loss_g", "fid"])


@pytest.mark.parametrize("name", ALL)
@examples(20)
@given(
    values=st.dictionaries(
        METRICS, st.lists(FINITE | st.just(NAN), min_size=12, max_size=24), min_size=1, max_size=3
    ),
    extra=st.sampled_from(["val_accuracy", "loss_d", "loss_g", "is", "ep_rew_mean", "kl"]),
    value=st.sampled_from([NAN, math.inf, -math.inf]),
    labels=st.sampled_from([{}, TARGET, {"dltools.metric": "val_accuracy"}]),
)
def test_what_is_never_finite_changes_no_decision(name, values, extra, value, labels) -> None:
    """With finite values somewhere, each report of the other metrics may have one more value."""
    many = max(map(len, values.values()))
    known = {**values, "val_precision": [0.5] * many}
    known.pop(extra, None)
    with_it = {**known, extra: [value] * many}
    assert allocation(name, with_it, labels) == allocation(name, known, labels)


# No longer finite


@pytest.mark.parametrize("name", JUDGING)
@pytest.mark.parametrize("count", some_of([2, 3, 1, 10], 2))
def test_a_job_diverges_with_the_third_report_in_a_row_that_is_not_finite(name, count) -> None:
    labels = TARGET if name == "tradl" else {}
    values = learning(30 - count) + [NAN] * count
    found = allocation(name, {"loss": values}, labels)
    assert ("no longer finite: diverged" in found.reason) is (count >= 3)
    slow = {"flowcon": ("CL", 2), "specon": ("CC", 0), "srtf": ("endless", 1), "slaq": ("-", 1),
            "tradl": ("P2", 0)}  # fmt: skip
    if count < 3:
        assert found.job_class == VERDICTS[name]
    elif count == 3 and name in ("flowcon", "specon"):  # slow for one round
        assert found.job_class == {"flowcon": "WL", "specon": "WC"}[name]
    else:
        assert (found.job_class, found.rank) == slow[name]
        assert not found.unlimited


@pytest.mark.parametrize("name", ["las", "fair", "dqoes", "noop"])
@pytest.mark.parametrize("count", some_of([2, 3, 1, 10], 2))
def test_policies_that_do_not_look_at_losses_go_on(name, count) -> None:
    values = learning(30 - count) + [NAN] * count
    assert allocation(name, {"loss": values}) == allocation(name, {"loss": learning()})


# Adversarial pairs


def pair(size: float = 0.05) -> dict[str, list[float]]:
    return {"loss_d": wave(0.7, 0.0, size=size), "loss_g": wave(1.4, 0.0, size=size)}


PAIR = "loss_g is flat, which does not show whether an adversarial"
REWARD = "ep_rew_mean is flat or fluctuates, which does not show"
FLAT: dict[str, tuple[Values, str]] = {
    "a constant adversarial pair": (pair(0.0), PAIR),
    "a fluctuating adversarial pair": (pair(0.05), PAIR),
    "a fluctuating reward": ({"ep_rew_mean": wave(20.0, 0.0), "loss": learning()}, REWARD),
}


@pytest.mark.parametrize("name", ["flowcon", "specon", "srtf", "slaq"])
@pytest.mark.parametrize(("values", "why"), FLAT.values(), ids=FLAT)
def test_what_is_flat_or_fluctuates_about_a_level_says_nothing(name, values, why) -> None:
    found = allocation(name, values)
    assert found.job_class == GUESSED[name]
    assert why in found.reason
    assert found.unlimited is (name in ("flowcon", "slaq"))


FLAT_FID = [60.0, *[50.0] * 29]
"""It changes no more; one that has always been the same would judge nothing."""


@pytest.mark.parametrize(
    ("name", "falling", "flat"),
    [("flowcon", "NL", "CL"), ("specon", "PC", "CC"), ("srtf", "known", "endless")],
)
def test_a_pair_with_fid_is_judged_by_it(name, falling, flat) -> None:
    found = allocation(name, {**pair(), "fid": [50 * value for value in learning()]})
    assert (found.job_class, "fid" in found.reason) == (falling, True)
    found = allocation(name, {**pair(), "fid": FLAT_FID})
    assert (found.job_class, "fid" in found.reason) == (flat, True)


def test_slaq_gives_a_pair_with_a_flat_fid_what_others_leave() -> None:
    found = allocation("slaq", {**pair(), "fid": FLAT_FID})
    assert (found.unlimited, found.rank) == (False, 1)


# Warm-ups


@pytest.mark.parametrize("name", JUDGING)
def test_a_loss_that_rises_in_a_warm_up_makes_no_job_wait(name) -> None:
    labels = TARGET if name == "tradl" else {}
    found = allocation(name, {"loss": warm_up()}, labels)
    assert found.job_class == GUESSED[name]
    if name != "specon":  # any change is growth there
        assert "loss is worse than at first: warm-up" in found.reason


@pytest.mark.parametrize(("name", "slow"), [("flowcon", "CL"), ("srtf", "endless"), ("slaq", "-")])
def test_a_loss_that_has_only_risen_for_long_is_no_warm_up(monkeypatch, name, slow) -> None:
    """Job `b` has had 90 CPU seconds."""
    monkeypatch.setattr(evaluation_metric, "WARM_UP_S", 60.0)
    found = allocation(name, {"loss": warm_up()})
    assert (found.job_class, "warm-up" in found.reason) == (slow, False)
    assert not found.unlimited


def test_a_loss_that_rises_after_it_has_fallen_is_no_warm_up() -> None:
    values = [*learning(12), *[1.8 + 0.2 * k for k in range(18)]]
    assert allocation("flowcon", {"loss": values}).job_class == "CL"


# Rewards


@pytest.mark.parametrize("name", ["flowcon", "specon", "srtf", "slaq"])
def test_a_reward_that_rises_slowly_is_judged_by_its_rise(name) -> None:
    """It rises by 1.5 in an interval, about which it goes up and down by 0.1."""
    found = allocation(name, {"ep_rew_mean": wave(1.0, 0.5, size=0.1), "loss": learning()})
    classes = {**VERDICTS, "srtf": "endless"}  # a straight line has no end in sight
    assert found.job_class == classes[name]
    assert "ep_rew_mean" in found.reason
    assert "flat" not in found.reason
    assert not found.unlimited
