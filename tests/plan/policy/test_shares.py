"""Ways to share a host, worked by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.policy.shares import beta_floor, cap, in_proportion, queue_shares, with_leftover
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.resource_use import Use


def job(name: str, threads: int | None = None) -> ContainerHistory:
    return ContainerHistory(name, name, 0, use=Use(threads=threads))


@pytest.mark.parametrize(
    ("threads", "cpus", "share"),
    [(1, 4.0, 0.25), (4, 4.0, 1.0), (9, 4.0, 1.0), (None, 4.0, 1.0), (0, 4.0, 1.0), (1, 0.0, 1.0)],
)
def test_a_job_can_use_its_threads_part_of_a_host(threads, cpus, share) -> None:
    assert cap(job("a", threads), cpus) == share


def test_in_line_gives_in_order_what_threads_can_use() -> None:
    # Four CPUs: floors of 0.05; a can use 1/4 of the host, b 1/2, c the rest of it.
    order = [job("a", 1), job("b", 2), job("c", 4)]
    assert queue_shares(order, 4.0, 0.05) == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25})
    assert queue_shares([job("a"), job("b")], 4.0, 0.05) == pytest.approx({"a": 0.95, "b": 0.05})


def test_jobs_that_all_have_what_they_can_use_are_not_limited() -> None:
    found = queue_shares([job("a", 1), job("b", 1)], 4.0, 0.05)
    assert found == pytest.approx({"a": 0.75, "b": 0.75})


def test_a_floor_above_an_equal_share_is_an_equal_share() -> None:
    assert queue_shares([job("a"), job("b")], 4.0, 0.9) == {"a": 0.5, "b": 0.5}
    assert queue_shares([], 4.0, 0.9) == {}


_threads = st.lists(st.none() | st.integers(1, 8), min_size=1, max_size=8)


@given(_threads, st.integers(1, 16), st.floats(0, 0.2))
def test_in_line_gives_all_of_a_host_in_order(threads, cpus, floor) -> None:
    order = [job(str(number), count) for number, count in enumerate(threads)]
    found = queue_shares(order, cpus, floor)
    shares = [found[one.id] for one in order]
    least = min(floor, 1 / len(order))
    most = [max(least, cap(one, cpus)) for one in order]
    assert all(least - 1e-9 <= share <= 1 for share in shares)
    if math.fsum(most) >= 1:
        assert math.fsum(shares) == pytest.approx(1)
        # A job has more than the floor only where all before it have what they can use.
        for number, share in enumerate(shares):
            if share > least + 1e-9:
                assert shares[:number] == pytest.approx(most[:number])
    else:
        assert all(share >= can for share, can in zip(shares, most, strict=True))


def test_what_no_job_can_use_raises_all_shares_to_at_most_1() -> None:
    assert with_leftover({"a": 0.25, "b": 0.5}, 0.25) == {"a": 0.5, "b": 0.75}
    assert with_leftover({"a": 0.9, "b": 0.0}, 0.5) == {"a": 1.0, "b": 0.5}
    assert with_leftover({"a": 0.5, "b": 0.5}, 1e-12) == {"a": 0.5, "b": 0.5}


def test_in_proportion_raises_to_the_floor_and_takes_it_from_the_others() -> None:
    # 8 : 1 : 1 of 1 would be 0.8, 0.1, 0.1; with a floor of 0.2 the first has 0.6.
    raised = pytest.approx({"a": 0.6, "b": 0.2, "c": 0.2})
    assert in_proportion({"a": 8, "b": 1, "c": 1}, 1.0, 0.2) == raised
    # c gets the floor of 0.2; of the 0.8 left b would get 0.8 * 2/9 = 0.178: the floor too.
    assert in_proportion({"a": 7, "b": 2, "c": 0}, 1.0, 0.2) == raised
    assert in_proportion({"a": 1, "b": 3}, 0.1, 0.2) == {"a": 0.05, "b": 0.05}
    assert in_proportion({"a": 0, "b": 0}, 1.0, 0.0) == {"a": 0.5, "b": 0.5}
    assert in_proportion({}, 1.0, 0.2) == {}
    # Weights whose sum is no number any more.
    assert in_proportion({"a": 1e308, "b": 1e308}, 1.0, 0.1) == {"a": 0.5, "b": 0.5}


@given(
    st.dictionaries(st.text(max_size=2), st.floats(0, 1e9), min_size=1, max_size=9),
    st.floats(1e-3, 1),
    st.floats(0, 0.3),
)
def test_in_proportion_sums_to_the_total_above_the_floor(weights, total, floor) -> None:
    found = in_proportion(weights, total, floor)
    assert math.fsum(found.values()) == pytest.approx(total)
    assert min(found.values()) >= min(floor, total / len(weights)) * (1 - 1e-9)


def test_flowcon_s_floor() -> None:
    assert beta_floor(3) == pytest.approx(1 / ((1 + 1 / 3) * 3))
