"""The imagined host that Docker shares alone: by when jobs must end, what an order has saved."""

import pytest
from helpers.shared_hosts import job

from dltools.notation.times import MICRO
from dltools.plan.forecast.docker_alone import DockerAlone
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.effort import EpochCost
from dltools.plan.signals.in_force import Owner


def trained(name: str, had: float, left: float | None, threads: int = 1) -> ContainerHistory:
    """A job that has had so many CPU seconds, in as many epochs, and needs as many as are left."""
    made = job(name, threads)
    made.use.add_samples([0], [had])
    if left is not None and had > 0:
        made.progress.epoch = had
        made.progress.note_counts(round(had + left), None)
        made.progress.epoch_cost = EpochCost(had, had, 1.0, (1.0,))
    return made


def after(before: DockerAlone, seconds: float, *jobs: ContainerHistory) -> DockerAlone:
    return before.after(round(seconds * MICRO), jobs, 1.0)


def test_jobs_of_known_length_wait_until_they_must_run_to_end_in_time() -> None:
    """On one CPU jobs that need 10 and 30 CPU s end side by side after 20 and 40 s, and may end
    after 24, and the last after 40.8. Half of the time that they may lose is kept in hand."""
    jobs = trained("a", 1.0, 9.0), trained("b", 1.0, 29.0)
    alone = after(DockerAlone(), 2.0, *jobs)
    waits = alone.dues(2 * MICRO, 1.0)
    assert waits[jobs[0].run_id].wait_s == pytest.approx(24.0 - 2.0 - 9.0 - 2.0)
    assert waits[jobs[1].run_id].wait_s == pytest.approx(40.8 - 2.0 - 29.0 - 0.4)
    assert alone.dues(3 * MICRO, 1.0)[jobs[0].run_id].wait_s == pytest.approx(10.0)
    assert alone.dues(2 * MICRO, 1.0, 2.0)[jobs[0].run_id].wait_s == pytest.approx(40 - 2 - 9 - 5)


def test_owners_weights_count_on_the_imagined_host() -> None:
    """In 2 s the heavy one has had 1.6 of the CPU there, and the light one 0.4. This one needs 1
    CPU s more, as it has had here: then 5 s; the heavy one ends 3.4 s later, and here as the last
    at most a fiftieth of that time later, half of which is kept in hand."""
    heavy, light = trained("a", 1.0, 9.0), trained("b", 1.0, None)
    heavy.owner = Owner(ratio=4.0)
    alone = after(after(DockerAlone(), 0.0, heavy, light), 2.0, heavy, light)
    had = {run: twin.had for run, twin in alone.jobs.items()}
    assert had == pytest.approx({heavy.run_id: 2.6, light.run_id: 1.4})
    wait_s = alone.dues(2 * MICRO, 1.0)[heavy.run_id].wait_s
    assert wait_s == pytest.approx(1.01 * (2.0 + 5.0 + 3.4) - 2.0 - 9.0)


def test_a_job_of_unknown_length_waits_until_it_has_had_too_little() -> None:
    """It has had 1 CPU s, as there, where it has half a CPU: 1.2 in 0.4 s,
    and 5 s of grace."""
    jobs = trained("a", 1.0, 9.0), trained("b", 1.0, None)
    alone = after(DockerAlone(), 2.0, *jobs)
    assert alone.dues(2 * MICRO, 1.0)[jobs[1].run_id].wait_s == pytest.approx(5.4)
    later = after(alone, 4.0, *jobs)
    assert later.dues(4 * MICRO, 1.0)[jobs[1].run_id].wait_s == pytest.approx(3.4)


def test_a_job_that_has_reported_once_is_of_unknown_length() -> None:
    """Its first epoch took 10 CPU s, with the start-up: the others may take less."""
    job = trained("a", 10.0, 90.0)
    job.progress.epoch_cost = EpochCost(10.0, 10.0)
    assert after(DockerAlone(), 10.0, job).jobs[job.run_id].total is None


def test_a_job_that_would_have_ended_is_the_farther_behind_the_longer_it_waits() -> None:
    """Alone it would have ended after 10 s; it has had half of that, and needs 5 s more."""
    late = trained("a", 5.0, 5.0)
    alone = after(after(DockerAlone(), 5.0, late), 10.0, late)
    had = [alone.dues(now * MICRO, 1.0)[late.run_id].had for now in (10, 20, 95)]
    assert had == pytest.approx([6 / 11, 10 / 25, 10 / 100])


def test_a_later_job_puts_the_ends_off() -> None:
    """Alone a job of 10 CPU s ends after 10 s; beside one of 30 after 20, and may end after 24."""
    a, b = trained("a", 1.0, 9.0), trained("b", 1.0, 29.0)
    before = after(DockerAlone(), 1.0, a)
    assert before.dues(MICRO, 1.0)[a.run_id].wait_s == pytest.approx(10.0 - 1.0 - 9.0)
    later = after(before, 1.0, a, b)
    assert later.dues(MICRO, 1.0)[a.run_id].wait_s == pytest.approx(22.8 - 1.0 - 9.0 - 1.9)


def test_the_job_with_the_longest_way_to_go_ends_hardly_later() -> None:
    """On two CPUs one of 30 CPU s and one thread runs for longer than one of 40 and two threads."""
    narrow, wide, other = (
        trained(n, 1.0, 29.0 + 10 * (k > 1), k) for n, k in zip("abc", (1, 2, 2), strict=True)
    )
    alone = DockerAlone().after(2 * MICRO, (narrow, wide, other), 2.0)
    dues = {key: due.wait_s for key, due in alone.dues(2 * MICRO, 2.0).items()}
    ends = {key: end / MICRO for key, end in alone.ends(2.0).items()}
    assert dues[narrow.run_id] == pytest.approx(1.01 * ends[narrow.run_id] - 2.0 - 29.0)
    assert dues[wide.run_id] > 1.1 * ends[wide.run_id] - 2.0 - 39.0 / 2 - 5.0


def test_a_job_that_has_all_that_it_can_use_under_docker_alone_waits_for_nobody() -> None:
    """On four CPUs a job of one thread has its CPU beside two of four threads."""
    jobs = (trained("a", 1.0, 9.0), *(trained(n, 1.0, 99.0, threads=4) for n in "bc"))
    alone = DockerAlone().after(2 * MICRO, jobs, 4.0)
    dues = alone.dues(2 * MICRO, 4.0)
    assert dues[jobs[0].run_id].wait_s == pytest.approx(9.0 + 2.0 - 2.0 - 9.0)
    assert dues[jobs[1].run_id].wait_s > 5.0


def test_jobs_have_there_what_they_have_here_and_share_what_one_leaves() -> None:
    """On two CPUs they have 14 in 10 s, and 2 are idle: the one of 2 CPU s ends after 2.5 s."""
    a, b = trained("a", 0.001, 1.999), trained("b", 0.001, 27.999, threads=2)
    alone = after(DockerAlone(), 0.0, a, b)
    b.use.add_samples([1], [14.001])
    alone = alone.after(10 * MICRO, (a, b), 2.0, 2.0)
    assert alone.jobs[a.run_id].ended == pytest.approx(2.5 * MICRO, abs=1e4)
    assert alone.jobs[b.run_id].had == pytest.approx(0.8 * 2.5 + 1.6 * 7.5, abs=0.01)


def test_an_order_saves_the_job_seconds_by_which_jobs_end_sooner() -> None:
    """Two jobs of 10 CPU s on one CPU. In order the first one ends after 10 s and the second after
    20; side by side both end after 20: ten job seconds are saved."""
    a, b = trained("a", 0.001, 9.999), trained("b", 0.001, 9.999)
    alone = after(DockerAlone(), 0.0, a, b)
    a.use.add_samples([1], [9.999])
    alone = after(alone, 10.0, a, b)
    assert alone.saved_s == pytest.approx(0.0)
    alone = after(alone, 10.0, b)
    b.use.add_samples([2], [9.998])
    alone = after(alone, 20.0, b)
    assert alone.saved_s == pytest.approx(10.0, abs=0.1)
    assert after(alone, 21.0) == DockerAlone()  # nobody is left: it begins anew


def test_an_order_that_ends_jobs_later_has_lost() -> None:
    """A job of 2 CPU s beside one of 18: side by side it ends after 4 s, behind it after 20."""
    a, b = trained("a", 0.001, 1.999), trained("b", 0.001, 17.999)
    alone = after(DockerAlone(), 0.0, a, b)
    b.use.add_samples([1], [17.0])
    alone = after(alone, 17.0, a, b)
    assert alone.saved_s == pytest.approx(-13.0, abs=0.1)  # since 4 s it would have ended


def test_what_an_order_will_have_lost_is_known_at_once() -> None:
    """A job of 30 CPU s has run for 10 s before one of 10. From then on they end side by side after
    30 and 20 s; there, where each has had 5 CPU s, after 30 and 10, and 20 job seconds are gone.
    Where competing costs a sixth, all of these 60 job seconds would have been ten more."""
    a, b = trained("a", 0.001, 29.999), trained("b", 0.001, 9.999)
    alone = after(DockerAlone(), 0.0, a, b)
    a.use.add_samples([1], [9.999])
    a.progress.epoch = 10.0
    alone = after(alone, 10.0, a, b)
    assert alone.lost(alone.ends(1.0), 1.0) == pytest.approx(10 / 60, abs=0.01)
    assert alone.lost(alone.ends(1.0), 1.0, 1 / 6) == pytest.approx(0.0, abs=0.01)
