"""Whether two settings differ."""

import pytest
from helpers.examples import examples
from helpers.plan_strategies import settings_
from hypothesis import given
from hypothesis import strategies as st

from dltools.notation.limits import LIMITS, differs


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [
        pytest.param({}, {}, False, id="nothing wanted"),
        pytest.param({"cpus": 1.0}, {}, True, id="unknown"),
        pytest.param({"cpus": 1.0}, {"cpus": 1.0, "memory": 1}, False, id="others do not count"),
        pytest.param({"cpus": 1}, {"cpus": 1.0}, False, id="integer and real"),
        pytest.param({"cpus": 1.0}, {"cpus": 1.009}, False, id="within a hundredth"),
        pytest.param({"cpus": 1.0}, {"cpus": 1.011}, True, id="over a hundredth"),
        pytest.param({"cpus": 0.01}, {"cpus": 0.0119}, False, id="within the engine's precision"),
        pytest.param({"cpus": 0.01}, {"cpus": 0.0125}, True, id="over the engine's precision"),
        pytest.param({"cpus": None}, {"cpus": 4.0}, False, id="no quota and all"),
        pytest.param({"cpus": None}, {"cpus": 3.9}, True, id="no quota and nearly all"),
        pytest.param({"cpus": 3.9}, {"cpus": None}, True, id="nearly all and no quota"),
        pytest.param({"weight": 1024}, {"weight": 1040}, True, id="weights apart"),
        pytest.param({"weight": 1024}, {"weight": None}, True, id="no weight"),
        pytest.param({"weight": 10}, {"weight": 10.24}, False, id="1 step of version 2"),
        pytest.param({"weight": 2}, {"weight": 10.24}, False, id="least of version 2"),
        pytest.param({"weight": 10}, {"weight": 20.48}, True, id="2 steps of version 2"),
        pytest.param({"weight": 300}, {"weight": 296.96}, False, id="nearest of version 2"),
        pytest.param({"weight": 2}, {"weight": 10}, True, id="weights of version 1"),
        pytest.param({"cpuset": "0"}, {"cpuset": "1"}, True, id="another cpuset"),
        pytest.param({"cpuset": None}, {"cpuset": "0"}, True, id="a cpuset to lift"),
        pytest.param({"memory": 2**30}, {"memory": 2**30 + 4095}, False, id="a page"),
        pytest.param({"memory": 2**30}, {"memory": 2**31}, True, id="twice the memory"),
        pytest.param({"memory": None}, {"memory": 2**30}, True, id="a memory limit to lift"),
        pytest.param({"cpus": 1, "memory": 9}, {"cpus": 1, "memory": 5}, True, id="one of two"),
    ],
)
def test_settings_differ(wanted, present, expected) -> None:
    assert differs(wanted, present, cpus=4.0) is expected


@examples(100)
@given(wanted=settings_, cpus=st.floats(0.1, 256))
def test_settings_do_not_differ_from_themselves(wanted, cpus) -> None:
    assert not differs(wanted, wanted, cpus)


@examples(100)
@given(wanted=settings_, name=st.sampled_from(LIMITS))
def test_a_setting_that_is_not_known_differs(wanted, name) -> None:
    present = {key: value for key, value in wanted.items() if key != name}
    assert differs(wanted, present, 4.0) is (name in wanted)
