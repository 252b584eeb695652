"""Settings of simulations are checked before anything runs."""

import pytest

from dltools.cli.sim.trials import Trial, check_settings, run_all
from dltools.errors import ConfigError
from dltools.sim.workload_file import read_workload

WORKLOAD = read_workload("[[job]]\nname = 'a'\nwork = 4\n", "f")


@pytest.mark.parametrize(
    ("policies", "assignments", "mode", "fault"),
    [
        (["noop", "nobody"], [], "auto", "unknown policy 'nobody'"),
        (["noop"], ["alpha=0.1"], "auto", "--set alpha: none of these policies has this parameter"),
        (["flowcon"], ["alpha=2"], "auto", "alpha must be between 0 and 1"),
        (["noop"], ["alpha"], "auto", "--set alpha: not NAME=VALUE"),
        (["noop"], [], "magic", "--realize magic: unknown mode"),
    ],
)
def test_a_wrong_setting_is_refused(policies, assignments, mode, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        check_settings(policies, assignments, mode, None)


def test_a_parameter_goes_to_the_policies_that_have_it() -> None:
    check_settings(["noop", "flowcon"], ["alpha=0.1"], "quota", None)
    trials = [
        Trial(WORKLOAD, name, ("alpha=0.1",), "quota", False, 2.0) for name in ("noop", "flowcon")
    ]
    assert [[job.name for job in jobs] for jobs in run_all(trials)] == [["a"], ["a"]]


def test_a_longer_quantum_costs_fewer_changes_of_turns() -> None:
    jobs = "".join(f"[[job]]\nname = '{name}'\nwork = 80\nthreads = 2\n" for name in "ab")
    two = read_workload(f"[[node]]\ncpus = 2\n{jobs}", "f")
    ends = {}
    for quantum_s in (None, 1.0, 16.0):
        trial = Trial(two, "fair", (), "rotate", False, 2.0, quantum_s)
        ends[quantum_s] = max(job.finish or 0.0 for job in run_all([trial])[0])
    assert ends[16.0] < ends[None] < ends[1.0]


def test_results_come_in_the_order_of_their_trials() -> None:
    faster = read_workload("[[job]]\nname = 'b'\nwork = 2\n", "f")
    trials = [Trial(one, "noop", (), "auto", False, 2.0) for one in (WORKLOAD, faster)]
    slow, fast = (jobs[0] for jobs in run_all(trials))
    assert (slow.name, fast.name) == ("a", "b")
    assert slow.finish is not None
    assert fast.finish is not None
    assert fast.finish < slow.finish
