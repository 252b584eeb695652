"""From allocations and settings to decisions and actions, worked by hand."""

from typing import Any

import pytest
from helpers.histories import ONE_POINT, having, history, host_history

from dltools.actions.plans import Action, Op
from dltools.actions.settings import Settings
from dltools.plan.hosts.host_history import HostHistory
from dltools.plan.outcome import decisions
from dltools.plan.outcome.decisions import JobDecision, present_settings
from dltools.plan.policy.interface import ActionKind, Allocation, JobAction
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import InForce

HALF = Allocation(0.5, "NL", "half")


def job(name: str, labels: dict[str, str] | None = None, **present: Any) -> ContainerHistory:
    return having(history(ONE_POINT, labels=labels, name=name), **present)


def realised(
    settings: dict[str, Settings], notes: dict[str, str] | None = None, **more: Any
) -> dict[str, Realisation]:
    found = Realisation(Mode.QUOTA, "as asked", settings=settings, notes=notes or {}, **more)
    return {"host": found}


def allocated(*jobs: ContainerHistory) -> HostHistory:
    """A host of two CPUs whose jobs have each been allocated a half."""
    host = host_history(*jobs)
    host.decision.allocations = {one.id: HALF for one in jobs}
    return host


def only(host: HostHistory, found: dict[str, Realisation]) -> JobDecision:
    (decision,) = decisions.decisions([host], found)
    return decision


def actions(host: HostHistory, found: dict[str, Realisation]) -> tuple[Action, ...]:
    return decisions.actions([host], decisions.decisions([host], found))


# Present settings


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"cpus": 0.5}, {"cpus": 0.5}),
        ({"cpus": 0.0}, {}),  # unknown
        ({"weight": 0.0}, {}),
        ({"cpuset": "0"}, {"cpuset": "0"}),
        ({"cpuset": "0-1"}, {"cpuset": None}),  # all that containers may have
        ({"cpuset": ""}, {}),
        ({"turn_s": 2.0}, {"turn_s": 2.0}),
        ({"state": "paused"}, {"state": "paused"}),
        ({"state": "running"}, {}),
    ],
)
def test_present_settings_are_those_that_are_known(fields, expected) -> None:
    assert present_settings(job("a", **fields).in_force, 2.0, "0-1") == expected


def test_a_cpu_list_smaller_than_the_host_is_a_setting_even_if_no_container_has_more() -> None:
    assert present_settings(InForce({"cpuset": "0-1"}), 4.0, "0-1") == {"cpuset": "0-1"}


# Decisions


def test_a_setting_that_changes_is_decided() -> None:
    a = job("a", cpus=2.0)
    found = only(allocated(a), realised({a.id: {"cpus": 1.0}}))
    assert (found.host, found.container_id, found.name) == ("host", a.id, "a")
    assert (found.setting, found.present) == ({"cpus": 1.0}, {"cpus": None})
    assert (found.allocation, found.job_class, found.reason) == (HALF, "NL", "half")


@pytest.mark.parametrize("cpus", [1.0, 1.005])
def test_a_setting_that_is_in_force_is_not_decided_again(cpus) -> None:
    a = job("a", cpus=cpus)
    assert only(allocated(a), realised({a.id: {"cpus": 1.0}})).setting is None


def test_a_turn_is_decided_again_so_that_all_groups_are_in_the_plan() -> None:
    a, turn = job("a", turn_s=2.0), {"group": 0, "turn_s": 2.0}
    assert only(allocated(a), realised({a.id: turn})).setting == turn


def test_a_reason_has_the_policy_s_words_the_note_and_the_faults_of_labels() -> None:
    a = job("a", {"dltools.target": "0.5"})
    found = only(allocated(a), realised({a.id: {"cpus": 1.0}}, {a.id: "its turn"}))
    (fault,) = a.progress.targets.faults
    assert found.reason == f"half; its turn; {fault}"


@pytest.mark.parametrize(
    ("label", "settings", "reason"),
    [
        ("dltools.protect", {}, "other: no sign of a training, protected"),
        ("another", {}, "other: no sign of a training, left alone"),
        ("dltools.role", {"cpus": None}, "training: label dltools.role=training; a note"),
    ],
)
def test_a_container_without_an_allocation_says_why(label, settings, reason) -> None:
    silent = history(labels={label: "training" if "role" in label else "1"}, name="silent")
    some = {silent.id: settings} if settings else {}
    found = only(host_history(silent), realised(some, {silent.id: "a note"}))
    assert (found.reason, found.job_class) == (reason, "-")
    assert found.allocation.share is None
    assert found.setting == (settings or None)


def test_decisions_are_sorted_by_name_on_each_host() -> None:
    hosts = [host_history(job("b"), job("a")), host_history(job("c"), name="other")]
    found = decisions.decisions(hosts, {**realised({}), "other": Realisation(Mode.QUOTA, "")})
    assert [(one.host, one.name) for one in found] == [("host", "a"), ("host", "b"), ("other", "c")]


# Actions


def test_an_action_expects_the_present_value_of_what_it_sets_alone() -> None:
    a, b = job("a", cpus=2.0, weight=512.0), job("b", cpus=1.0)
    one_each = realised({a.id: {"cpus": 1.0}, b.id: {"cpus": 1.0}})
    (action,) = actions(allocated(a, b), one_each)  # b has its setting already
    assert (action.id, action.op, action.host, action.container_name) == (1, Op.UPDATE, "host", "a")
    assert (action.set, action.expect) == ({"cpus": 1.0}, {"cpus": None})
    assert (action.reason, action.to) == ("half", None)


def test_an_action_expects_nothing_of_what_is_unknown_and_of_turns() -> None:
    a = job("a", weight=512.0)
    (action,) = actions(allocated(a), realised({a.id: {"cpus": 1.0}}))
    assert action.expect == {}
    b = job("b", turn_s=1.0)
    turn = {"group": 0, "turn_s": 2.0}
    (action,) = actions(allocated(b), realised({b.id: turn}))
    assert (action.op, action.set, action.expect) == (Op.ROTATE, turn, {})


def test_what_is_done_once_follows_the_settings() -> None:
    a, b = job("a", cpus=2.0), job("b", cpus=2.0)
    host = allocated(a, b)
    host.decision.actions = (
        JobAction(ActionKind.MIGRATE, a.id, "saves time", "other"),
        JobAction(ActionKind.DELIVER, "gone", "has left"),
        JobAction(ActionKind.DELIVER, b.id, "met its target"),
    )
    found = actions(host, realised({b.id: {"cpus": 1.0}}))
    assert [(one.id, one.op, one.container_name, one.set, one.to) for one in found] == [
        (1, Op.UPDATE, "b", {"cpus": 1.0}, None),
        (2, Op.MIGRATE, "a", {}, "other"),
        (3, Op.DELIVER, "b", {}, None),
    ]
    assert [one.reason for one in found] == ["half", "saves time", "met its target"]


# What a plan says beside its actions


def test_classes_are_by_host_and_name_without_containers_that_are_gone() -> None:
    a, b = job("a"), job("b")
    host = allocated(b, a)
    host.decision.allocations["gone"] = HALF
    found = decisions.classes([host, host_history(name="idle")])
    assert found == {"host": {"a": "NL", "b": "NL"}}
    assert list(found["host"]) == ["a", "b"]


def test_the_gain_names_hosts_where_there_are_several() -> None:
    hosts = [host_history(name=name) for name in "abc"]
    assert decisions.gain(hosts) == ""
    hosts[1].decision.gain = "much"
    assert decisions.gain(hosts) == "much"
    hosts[2].decision.gain = "little"
    assert decisions.gain(hosts) == "b: much; c: little"


def test_the_modes_of_all_hosts_are_parameters_of_the_plan() -> None:
    some: dict[str, Settings] = {"a": {"cpus": 1.0}}
    found = {
        "a": Realisation(Mode.WEIGHT, "they fit", settings=some),
        "b": Realisation(Mode.PRIORITY, "crowded", settings=some),
        "c": Realisation(Mode.QUOTA, "nothing is set"),
    }
    said = {"realize": "priority+weight", "realize_why": "crowded; they fit"}
    assert decisions.modes(found) == said
    assert decisions.modes({"c": found["c"]}) == {}
