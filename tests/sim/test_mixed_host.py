"""Wide trainings whose threads spin, and those that ask for little beside them: nobody pays for the
threads of others."""

import pytest
from helpers.gauntlet import lots, seconds_alone, simulate

from dltools.sim.workload import HostSpec, Job, LearningCurve, Workload, workload_of

CURVE = LearningCurve("loss", "exponential", 2.3, 0.1, 6.0, 0.01)
HALF = {"threads": 1, "spin": 0.0, "cpus": 0.5}


def training(name: str, arrival: float, work: float, threads: int = 2, **more: float) -> Job:
    found = {"spin": 1.0, "startup": 1.0, "epochs": 60, **more}
    return Job(name, arrival=arrival, work=work, threads=threads, curve=CURVE, **found)


def workload(*jobs: Job) -> Workload:
    return workload_of(jobs, [HostSpec("host", 2.0)], "mixed")


def a_day_s_mix() -> Workload:
    """Three endless trainings, short ones, a sweep of 21 small jobs by threes, one with half a CPU,
    a notebook and a database, on two CPUs."""
    return workload(
        *(training(f"endless{at}", 10.0 * at, 400, epochs=600) for at in range(3)),
        training("half", 20.0, 30, **HALF),
        *(training(f"short{at}", 60.0 + 60 * at, 10, epochs=20) for at in range(4)),
        *(training(f"sweep{k}", 30.0 + k // 3 * 30, 5, 1, spin=0, epochs=20) for k in range(21)),
        Job("notebook", request=0.05, think=0.95, duration=360.0, role="interactive"),
        Job("db", request=0.05, think=0.2, duration=360.0, threads=2, role="other"),
    )


def ratios(given: Workload, policy: str) -> dict[str, float]:
    """What each did, against Docker alone."""
    under_docker = simulate(given, "noop", None)
    found = lots(given, simulate(given, policy, None), under_docker, seconds_alone(given))
    return {lot.name: lot.ratio for lot in found}


@pytest.mark.parametrize("policy", ["flowcon", "srtf"])
def test_of_a_day_s_mix_nobody_does_much_less_than_under_docker_alone(policy) -> None:
    """Before, half did 0.82 under flowcon, and one of the sweep 0.63 under srtf."""
    found = ratios(a_day_s_mix(), policy)
    assert min(found.values()) > 0.89
    assert min(found[f"short{at}"] for at in range(4)) > 3
    assert min(found[f"endless{at}"] for at in range(3)) > 3


@pytest.mark.parametrize("policy", ["flowcon", "srtf"])
@pytest.mark.parametrize("small", [HALF, {"threads": 1, "spin": 0.0}], ids=["half", "one"])
def test_a_small_job_runs_beside_wide_ones_that_gain_all_the_same(policy, small) -> None:
    """Before, half did 0.56 under srtf."""
    wide = [training(f"wide{at}", 0.0, 200, epochs=300) for at in range(2)]
    found = ratios(workload(*wide, training("small", 0.0, 25, **small)), policy)
    assert found["small"] > 0.95
    assert min(found["wide0"], found["wide1"]) > 2
