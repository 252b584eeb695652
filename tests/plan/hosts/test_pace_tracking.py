"""What is measured of jobs that compete decides the mode, and goes on in the state."""

import functools
import json

import pytest
from helpers.closed_loop import follow
from helpers.examples import examples
from helpers.observed_rows import having_read, planner
from hypothesis import given
from hypothesis import strategies as st

from dltools.actions.plan_lines import dump_plan
from dltools.observations.table import Row
from dltools.plan.planner import Planner
from dltools.plan.realisation.options import Mode

SLEEP, SPIN = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


def planned(rows: list[Row], policy: str = "fair", state: object = None) -> Planner:
    return having_read(planner(policy, state=state), rows)


@functools.cache
def recorded(policy: str, spins: tuple[float, ...]) -> list[Row]:
    return follow(planner(policy), spins, 150.0)


@pytest.mark.parametrize("spins", [SPIN, (1.0, 1.0, 0.0)])
def test_the_plan_says_which_mode_was_forecast_to_be_best_and_why(spins) -> None:
    made = planner("fair")
    follow(made, spins, 150.0)
    plan = made.plan({})
    assert plan.params["realize"] == Mode.PRIORITY.value
    why = plan.params["realize_why"]
    assert "in turns" in why
    assert "side by side" in why
    assert any(why in line for line in made.explain().lines)


@pytest.mark.parametrize("policy", ["fair", "srtf"])
@pytest.mark.parametrize("spins", [SLEEP, SPIN], ids=["sleep", "spin"])
@examples(20)
@given(data=st.data())
@pytest.mark.slow
def test_a_recording_cut_anywhere_gives_the_same_last_plan(spins, policy, data) -> None:
    rows = recorded(policy, spins)
    rows = rows[: data.draw(st.integers(1, len(rows)))]
    whole = dump_plan(planned(rows, policy).plan({}))
    assert dump_plan(planned(rows, policy).plan({})) == whole  # the same bytes
    state, at = None, 0
    for cut in sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3))):
        plan = planned(rows[at:cut], policy, state).plan({})
        state, at = json.loads(json.dumps(plan.state)), cut
    assert dump_plan(planned(rows[at:], policy, state).plan({})) == whole


def test_a_state_that_lacks_what_was_measured_is_readable() -> None:
    rows = recorded("fair", SPIN)
    state = json.loads(json.dumps(planned(rows[: len(rows) // 2]).plan({}).state))
    (host,) = state["hosts"].values()
    del host["history"]["outlook"]["contention"]
    for container in host["history"]["containers"].values():
        del container["progress"]["pace"]
    plan = planned(rows[len(rows) // 2 :], state=state).plan({})
    assert plan.params["realize"] == "priority"
