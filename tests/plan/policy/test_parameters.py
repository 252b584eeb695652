"""Policy parameters from text, TOML and Python: converted, checked and explained."""

import math
from dataclasses import dataclass

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from dltools.errors import ConfigError
from dltools.plan.policy.parameters import build, describe, parameter
from dltools.plan.policy.registry import policies


@dataclass(frozen=True)
class Sample:
    alpha: float = parameter(0.03, "Threshold.", high=1.0, source="paper")
    itval: float = parameter(20.0, "Seconds between decisions.", low=1.0, source="code")
    strict: bool = parameter(True, "Follow the letter.", source="ours")


@dataclass(frozen=True)
class Nothing:
    pass


def test_defaults_stand_where_nothing_is_given() -> None:
    assert build(Sample, {}) == Sample(0.03, 20.0, True)
    assert build(Nothing, {}) == Nothing()


@pytest.mark.parametrize(
    ("given_", "expected"), [(0.5, 0.5), (" 0.5 ", 0.5), ("1e-3", 0.001), (".5", 0.5), (0, 0.0)]
)
def test_a_number_may_be_text(given_, expected) -> None:
    found = build(Sample, {"alpha": given_}).alpha
    assert found == expected
    assert type(found) is float


@pytest.mark.parametrize(
    "value",
    [
        -0.1, 1.1, "-0.1", "1.0001", "two", "", " ", "0,5", "0x1", "1/2", "50%", "nan", "NaN",
        math.nan, "inf", "-inf", "Infinity", math.inf, -math.inf, True, False, None, [0.5], {},
        "true", "1e999", "0.5 0.5",
    ],
)  # fmt: skip
def test_what_is_no_number_in_range_is_refused(value) -> None:
    with pytest.raises(ConfigError) as refused:
        build(Sample, {"alpha": value})
    assert str(refused.value) == f"alpha must be between 0 and 1, not {value!r}"


@pytest.mark.parametrize(("name", "span"), [("alpha", "0 and 1"), ("itval", "1 and inf")])
def test_what_no_real_holds_is_refused_even_where_there_is_no_upper_end(name, span) -> None:
    for value in (math.inf, "inf", "1e999", 10**400, -(10**400)):
        with pytest.raises(ConfigError, match=f"{name} must be between {span}"):
            build(Sample, {name: value})


def test_the_ends_of_a_range_belong_to_it() -> None:
    assert [build(Sample, {"itval": value}).itval for value in (1.0, 1e300)] == [1.0, 1e300]
    with pytest.raises(ConfigError):
        build(Sample, {"itval": 0.999})


TRUTHS = {True: (True, "True", "YES", "1", 1), False: (False, "false", "No", "0", 0)}


@pytest.mark.parametrize(
    ("value", "expected"), [(one, truth) for truth, values in TRUTHS.items() for one in values]
)
def test_a_truth_may_be_text(value, expected) -> None:
    assert build(Sample, {"strict": value}).strict is expected


@pytest.mark.parametrize("value", ["", "maybe", "2", 2, -1, None, "truee", 0.5, [], "nan"])
def test_what_is_no_truth_is_refused(value) -> None:
    with pytest.raises(ConfigError) as refused:
        build(Sample, {"strict": value})
    assert str(refused.value) == f"strict must be true or false, not {value!r}"


@pytest.mark.parametrize("name", ["alhpa", "", "Alpha", "alpha ", "__class__"])
def test_an_unknown_name_is_refused_and_the_known_ones_are_named(name) -> None:
    with pytest.raises(ConfigError) as refused:
        build(Sample, {name: 1})
    known = "this policy has: alpha, itval, strict"
    assert str(refused.value) == f"unknown parameter {name!r}; {known}"


def test_a_policy_without_parameters_says_so() -> None:
    with pytest.raises(ConfigError, match=r"unknown parameter 'x'; this policy has: none"):
        build(Nothing, {"x": 1})


_ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=4)
)


@examples(200)
@given(values=st.dictionaries(st.sampled_from(["alpha", "itval", "strict", "x"]), _ANYTHING))
def test_any_value_is_taken_or_refused(values) -> None:
    try:
        found = build(Sample, values)
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert 0 <= found.alpha <= 1
        assert 1 <= found.itval < math.inf
        assert found.strict in (True, False)


def test_parameters_describe_themselves() -> None:
    alpha, itval, truth = describe(Sample)
    bounds = {"type": "number", "low": 0.0, "high": 1.0, "choices": [], "default": 0.03}
    assert alpha == bounds | {"name": "alpha", "help": "Threshold.", "source": "paper"}
    bounds |= {"low": 1.0, "high": math.inf, "default": 20.0}
    words = {"name": "itval", "help": "Seconds between decisions.", "source": "code"}
    assert itval == bounds | words
    assert (truth["name"], truth["type"], truth["default"]) == ("strict", "bool", True)
    assert describe(Nothing) == []


OWN = policies(()).values()


@pytest.mark.parametrize("policy", OWN, ids=lambda policy: policy.name)
def test_the_defaults_of_every_policy_are_in_their_own_range(policy) -> None:
    defaults = {entry["name"]: entry["default"] for entry in describe(policy.parameters)}
    assert build(policy.parameters, defaults) == policy.parameters()
    assert build(policy.parameters, {k: str(v) for k, v in defaults.items()}) == policy.parameters()


@pytest.mark.parametrize("policy", OWN, ids=lambda policy: policy.name)
def test_every_parameter_says_what_it_is_and_whose(policy) -> None:
    for entry in describe(policy.parameters):
        assert entry["help"]
        assert entry["source"] in ("code", "paper", "ours")
        assert entry["low"] <= entry["high"]
