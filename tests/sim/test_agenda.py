"""Events in order of time, and how soon settings follow: by hand, and laws that always hold."""

import math

import pytest
from helpers.simulations import simulation
from hypothesis import given
from hypothesis import strategies as st

from dltools.plan.realisation.options import Mode
from dltools.sim.agenda import Agenda, Arrival, Observation, Wake
from dltools.sim.reaction import AT_ONCE, Reaction
from dltools.sim.simulated_host import SimulatedHost
from dltools.sim.simulation import Observer
from dltools.sim.workload import HostSpec, Job, workload_of


def test_events_come_in_order_of_time_and_those_of_one_time_as_they_were_added() -> None:
    agenda = Agenda()
    for name, time in (("c", 5.0), ("a", 1.0), ("d", 5.0), ("b", 2.0)):
        agenda.add(time, Arrival(Job(name)))
    assert agenda.next_time == 1.0
    found = [(time, event.job.name) for time, event in (agenda.pop() for _ in range(4))]  # type: ignore[union-attr]
    assert found == [(1.0, "a"), (2.0, "b"), (5.0, "c"), (5.0, "d")]
    assert agenda.next_time is None


def test_observations_are_no_work() -> None:
    agenda, host = Agenda(), SimulatedHost(HostSpec("h", 1.0))
    agenda.add(0.0, Observation(host))
    assert not agenda.has_work()
    agenda.add(1.0, Wake(host, 0))
    assert agenda.has_work()


LIVE = Reaction(2.0, 0.1)


def test_what_takes_no_time_is_seen_at_once() -> None:
    assert AT_ONCE.to_event(3.3) == AT_ONCE.to_report(3.3) == AT_ONCE.to_due_time(3.3) == 3.3
    assert AT_ONCE.to_interval(3.0, 30.0) == 33.0


def test_reports_and_ends_of_turns_wait_for_the_next_sample() -> None:
    assert LIVE.to_event(3.3) == pytest.approx(3.4)
    assert LIVE.to_report(3.3) == LIVE.to_report(4.0) == pytest.approx(4.1)
    assert LIVE.to_due_time(4.1) == pytest.approx(4.1)
    assert LIVE.to_due_time(4.2) == pytest.approx(6.1)
    assert LIVE.to_report(math.inf) == math.inf


def test_rounds_come_every_interval_but_for_jitter() -> None:
    assert LIVE.to_interval(4.1, 30.0) == pytest.approx(34.1)
    assert LIVE.to_interval(4.1, 2.1) == pytest.approx(6.1)
    assert LIVE.to_interval(10.43, 4.0) == pytest.approx(16.1)  # 14.1 is 3.67 s after: too early


@given(st.floats(0, 1e6), st.floats(0.01, 60), st.floats(0, 1), st.floats(0.1, 600))
def test_settings_never_come_before_their_cause_nor_a_sample_late(
    time, interval_s, delay_s, round_s
) -> None:
    reaction = Reaction(interval_s, delay_s)
    slack = 1e-6 * max(1.0, time)
    assert time + delay_s == reaction.to_event(time)
    assert -slack <= reaction.to_report(time) - time - delay_s <= interval_s + slack
    assert -slack <= reaction.to_due_time(time) - time <= interval_s + slack
    assert reaction.to_interval(time, round_s) > time


def weights(reaction: Reaction) -> list[tuple[float, tuple[float, ...]]]:
    """Return the weights of two jobs, each time that they are others. The second arrives at 7 s."""
    jobs = [Job("a", work=100.0, threads=2, epochs=10), Job("b", 7.0, 20.0, 2, 20, startup=3.0)]
    found: list[tuple[float, tuple[float, ...]]] = []

    def look(now: float, host: SimulatedHost) -> None:
        seen = tuple(host.jobs[key].weight for key in sorted(host.jobs))
        if not found or found[-1][1] != seen:
            found.append((round(now, 2), seen))

    more = {"clairvoyant": True, "observer": Observer(look, 0.01), "reaction": reaction}
    made = workload_of(jobs, [HostSpec("h", 2.0)], "test")
    simulation(made, "srtf", Mode.PRIORITY, **more).run(until=12.5)
    return found


def test_a_newcomer_has_the_host_to_itself_a_tenth_of_a_second_after_it_starts() -> None:
    assert weights(AT_ONCE) == [(0.0, (1024.0,)), (7.01, (10.0, 1024.0))]
    assert weights(LIVE) == [(0.0, (1024.0,)), (7.01, (1024.0, 1024.0)), (7.11, (10.0, 1024.0))]
