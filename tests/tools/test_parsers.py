"""No input makes a parser raise anything but its refusal: a little of `make fuzz`."""

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from trust.parsers import PARSERS, attempt, inputs


@pytest.mark.parametrize("name", PARSERS)
@examples(40)
@given(data=st.data())
def test_no_input_breaks_a_parser(name, data) -> None:
    attempt(PARSERS[name], data.draw(inputs(name)))
