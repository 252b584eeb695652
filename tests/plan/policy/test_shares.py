"""Ways to share a host, worked by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.policy.container_history import ContainerHistory
from dltools.plan.policy.shares import beta_floor, in_line, in_proportion


def job(name: str, threads: int | None = None) -> ContainerHistory:
    return ContainerHistory(name, name, "h", arrived=0, threads=threads)


def test_in_line_gives_in_order_what_threads_can_use() -> None:
    # Four CPUs: floors of 0.05; a can use 1/4 of the host, b 1/2, c the rest of it.
    order = [job("a", 1), job("b", 2), job("c", 4)]
    assert in_line(order, 4.0, 0.05) == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25})
    assert in_line([job("a"), job("b")], 4.0, 0.05) == pytest.approx({"a": 0.95, "b": 0.05})


def test_jobs_that_all_have_what_they_can_use_are_not_limited() -> None:
    assert in_line([job("a", 1), job("b", 1)], 4.0, 0.05) == pytest.approx({"a": 0.75, "b": 0.75})


def test_in_proportion_raises_to_the_floor_and_takes_it_from_the_others() -> None:
    # 8 : 1 : 1 of 1 would be 0.8, 0.1, 0.1; with a floor of 0.2 the first has 0.6.
    assert in_proportion({"a": 8, "b": 1, "c": 1}, 1.0, 0.2) == pytest.approx(
        {"a": 0.6, "b": 0.2, "c": 0.2}
    )
    assert in_proportion({"a": 1, "b": 3}, 0.1, 0.2) == {"a": 0.05, "b": 0.05}
    assert in_proportion({"a": 0, "b": 0}, 1.0, 0.0) == {"a": 0.5, "b": 0.5}


@given(
    st.dictionaries(st.text(max_size=2), st.floats(0, 1e9), min_size=1, max_size=9),
    st.floats(1e-3, 1), st.floats(0, 0.3),
)  # fmt: skip
def test_in_proportion_sums_to_the_total_above_the_floor(
    weights: dict[str, float], total: float, floor: float
) -> None:
    found = in_proportion(weights, total, floor)
    assert math.fsum(found.values()) == pytest.approx(total)
    assert min(found.values()) >= min(floor, total / len(weights)) * (1 - 1e-9)


def test_flowcon_s_floor() -> None:
    assert beta_floor(3) == pytest.approx(1 / ((1 + 1 / 3) * 3))
