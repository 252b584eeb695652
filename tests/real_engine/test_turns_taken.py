"""Turns on a real engine are taken in order: measured while no other test runs."""

import pytest
from helpers.containers import Containers, eventually
from helpers.tools import Tools
from real_engine.test_turns import SPIN, ran_alone, rotating, state


@pytest.mark.alone
def test_each_container_gets_its_turn_and_two_never_run_at_once(
    run: Containers, tool: Tools
) -> None:
    jobs = [run(SPIN, name=name) for name in ("a", "b", "c")]
    with rotating(tool, jobs) as process:
        turns_taken = eventually(lambda: ran_alone(jobs), lambda taken: len(taken) >= 9)
        process.terminate()
        assert process.wait(120) == 143
    assert turns_taken == [jobs[number % 3] for number in range(len(turns_taken))]
    assert [state(job) for job in jobs] == ["running"] * 3
