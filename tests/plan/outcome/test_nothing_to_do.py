"""Why a plan has no actions."""

from typing import Any

import pytest
from helpers.observed_rows import container, having_read, node, planner, point

from dltools.observations.table import Row
from dltools.plan.realisation.options import Mode


def why(rows: list[Row], name: str = "flowcon", mode: Mode | None = None) -> str:
    """Return what the plan for some rows says, and what the explanation for people does."""
    made = planner(name, mode)
    if rows:
        having_read(made, rows)
    found = made.plan({})
    assert bool(found.nothing) == (not found.actions)
    assert made.explain().nothing == found.nothing
    return found.nothing


def training(name: str, cpu_seconds: float = 20.0, **more: Any) -> list[Row]:
    return [container(0, name, cpu_seconds, **more), point(0, name, 0.5)]


ALONE, PROTECTED = training("a"), training("a", labels='{"dltools.protect": "true"}')


@pytest.mark.parametrize(
    ("rows", "policy", "reason"),
    [
        ([], "flowcon", "the input has no sample of a host"),
        ([node(0)], "flowcon", "no container runs, or the filters of dl-probe select none"),
        ([node(0), *ALONE], "flowcon", "one job alone, a: nothing to share"),
        ([node(0), *PROTECTED], "flowcon", "a (training: reports loss, protected)"),
        ([node(0), *ALONE, *training("b")], "noop", "the policy noop sets no limits"),
    ],
)
def test_there_is_nothing_to_share(rows, policy, reason) -> None:
    assert why(rows, policy) == reason


def test_none_is_known_to_train() -> None:
    others = [container(0, name, 1.0) for name in "abcde"]
    assert why([node(0), *others]).startswith(
        "5 containers run, none is known to train: a (other), b (other), c (other) and 2 more; "
        "dl-probe --list-metrics shows"
    )


def test_what_reports_without_a_step_is_named_with_the_reason() -> None:
    other = {"role": "other", "role_reason": "no sign of a training"}
    rows = [node(0), container(0, "a", 1.0, **other), point(0, "a", 0.4, "packet_loss")]
    assert why(rows).startswith(
        "1 container runs, it is not known to train: a (other: reports packet_loss without a step "
        "or an epoch); "
    )


def test_hosts_with_one_reason_are_named_together() -> None:
    rows = [node(0, host="one"), node(0, host="three"), node(0, host="two")]
    assert why(rows).startswith("no container runs")
    rows.append(container(0, "a", 1.0, host="two"))
    assert why(rows).startswith("one, three: no container runs, ")
    assert "; two: 1 container runs, it is not known to train: a (other); " in why(rows)


def test_jobs_whose_weights_do_not_compare_are_told() -> None:
    """As containers of two pods, to which kubelet gives the weight 2."""
    own = {"cpu_weight": 2.0, "owner_cpu_weight": 2.0}
    pods = {"a": "/pod-1", "b": "/pod-1", "c": "/pod-2"}
    rows = [row for name, pod in pods.items() for row in training(name, cgroup_parent=pod, **own)]
    said = why([node(0), *rows], "srtf", Mode.PRIORITY)
    assert "c (under /pod-2, others under /pod-1: weights do not compare; " in said


def test_that_weights_do_nothing_is_told() -> None:
    """As pods of one container each."""
    rows = [row for name in "ab" for row in training(name, cgroup_parent=f"/pod-{name}")]
    assert why([node(0), *rows], "srtf", Mode.PRIORITY) == (
        "--realize priority is not possible: weights do nothing here, because no two jobs are "
        "under one cgroup; --realize quota or rotate is possible"
    )


@pytest.mark.parametrize("policy", ["flowcon", "srtf", "fair"])
def test_jobs_of_one_thread_each(policy) -> None:
    rows = [row for name in "abc" for row in training(name, thread_count=1)]
    assert why([node(0), *rows], policy).startswith("3 busy threads of 3 jobs on 2 CPUs: ")
