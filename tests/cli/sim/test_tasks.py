"""Settings of simulations are checked before anything runs."""

from __future__ import annotations

import pytest

from dltools.cli.sim.tasks import Task, check_settings, run_all
from dltools.errors import ConfigError
from dltools.sim.workload_file.reading import read_workload

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
def test_a_wrong_setting_is_refused(
    policies: list[str], assignments: list[str], mode: str, fault: str
) -> None:
    with pytest.raises(ConfigError, match=fault):
        check_settings(policies, assignments, mode)


def test_a_parameter_goes_to_the_policies_that_have_it() -> None:
    check_settings(["noop", "flowcon"], ["alpha=0.1"], "quota")
    tasks = [Task(WORKLOAD, name, ("alpha=0.1",), "quota", False) for name in ("noop", "flowcon")]
    assert [[job.name for job in jobs] for jobs in run_all(tasks)] == [["a"], ["a"]]


def test_results_come_in_the_order_of_their_tasks() -> None:
    faster = read_workload("[[job]]\nname = 'b'\nwork = 2\n", "f")
    tasks = [Task(one, "noop", (), "auto", False) for one in (WORKLOAD, faster)]
    slow, fast = (jobs[0] for jobs in run_all(tasks))
    assert (slow.name, fast.name) == ("a", "b")
    assert slow.finish is not None
    assert fast.finish is not None
    assert fast.finish < slow.finish
