"""Quotas that nobody has asked for: they leave no CPU idle that a job could use."""

import pytest
from helpers.shared_hosts import host, job, realised
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.signals.in_force import Owner

FILLED = ModeChoice(Mode.QUOTA, "", fills=True)


def quotas(
    shares: dict[str, float],
    threads: dict[str, int] | None = None,
    owners: dict[str, float] | None = None,
    cpus: float = 2.0,
) -> dict[str, float | None]:
    jobs = [job(name, (threads or {}).get(name, 2)) for name in shares]
    for one in jobs:
        if limit := (owners or {}).get(one.name):
            one.owner = Owner(cpus=limit, is_known=True)
    found = realised(FILLED, host(*jobs, cpus=cpus, shares=shares))
    return {key: setting.get("cpus") for key, setting in found.settings.items()}


def test_nobody_is_held_below_a_quarter_of_an_equal_share() -> None:
    assert quotas({"a": 0.98, "b": 0.02}) == {"a": 1.75, "b": 0.25}
    assert quotas({"a": 1.0, "b": 0.01, "c": 0.01}) == {"a": 1.667, "b": 0.167, "c": 0.167}


def test_what_a_job_cannot_use_is_the_others() -> None:
    """One has one thread, one a quota of its owner's: these have no other limit."""
    assert quotas({"a": 0.9, "b": 0.1}, {"a": 1}) == {"a": None, "b": 1.0}
    assert quotas({"a": 0.9, "b": 0.1}, owners={"a": 0.5}) == {"a": 0.5, "b": 1.5}


def test_nobody_is_held_back_where_all_fits() -> None:
    assert quotas({"a": 0.9, "b": 0.1}, {"a": 1, "b": 1}) == {"a": None, "b": None}


@given(
    st.lists(st.tuples(st.floats(0.01, 1.0), st.integers(1, 8)), min_size=1, max_size=6),
    st.sampled_from([1.0, 2.0, 7.5, 64.0]),
)
def test_quotas_come_to_all_that_the_jobs_can_use(jobs, cpus) -> None:
    shares = {f"j{number}": share for number, (share, _) in enumerate(jobs)}
    threads = {f"j{number}": count for number, (_, count) in enumerate(jobs)}
    found = quotas(shares, threads, cpus=cpus)
    usable = [min(threads[key], cpus if cap is None else cap) for key, cap in found.items()]
    assert sum(usable) == pytest.approx(min(cpus, sum(threads.values())), abs=0.01 * len(jobs))
    for key, cap in found.items():
        if cap is not None:
            assert cap >= min(threads[key], 0.25 * cpus / len(jobs)) - 0.001
