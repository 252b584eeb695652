"""What is planned where an engine cannot do everything."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from helpers import observed_rows
from helpers.observed_rows import at, container, having_read, job_id, node, point, reread, sets

from dltools.actions.plans import Action, Op, Plan
from dltools.observations.table import Row
from dltools.plan.planner import Planner
from dltools.plan.policy.interface import Cluster
from dltools.plan.policy.specon import KnownJob, load_of
from dltools.plan.realisation.bounds import possible
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode

SLURM_V1 = "cpus+cpu_weight+cpuset+move"
CRI = "cpuset+pause+move"
CRUN = "cpu_weight+move"
"""Podman with crun and systemd on version 2: each container is alone in a scope of its own."""

APART = "weights do nothing here, because no two jobs are under one cgroup"
LOOK = "cpus+cpu_weight+cpuset+pause+move"
JOBS = ("a", "b", "c")


def rows_for(cannot: dict[str, str | None], **more: Any) -> list[Row]:
    """A minute of trainings of two threads on two CPUs, of different lengths, as their logs say."""
    rows = []
    for now in range(0, 60, 2):
        rows.append(node(now))
        for number, name in enumerate(JOBS, 1):
            threads = {"thread_count": 2, "cannot": cannot.get(name), **more}
            rows.append(container(now, name, 20 + now / 2, **threads))
            epochs = {"epoch": now / 2 + 1, "epoch_count": 50 * 3**number}
            rows.append(point(now - 0.1, name, 3 / (1 + now / 10) ** number, **epochs))
    return sorted(rows, key=lambda row: row["time"])


def in_pods(cannot: str | None, pods: str = "pqr", **more: Any) -> list[Row]:
    """The jobs a, b and c, each in the pod of its place."""
    rows = everywhere(cannot, **more)
    for row in rows:
        if row["kind"] == "container":
            pod = pods[JOBS.index(row["container_name"])]
            row["cgroup_parent"] = f"/kubepods/burstable/pod{pod}"
    return rows


def everywhere(cannot: str | None, **more: Any) -> list[Row]:
    return rows_for(dict.fromkeys(JOBS, cannot), **more)


def planner(rows: list[Row], mode: Mode | None = None, state: Any = None) -> Planner:
    return having_read(observed_rows.planner("srtf", mode, state), rows)


def plan_of(rows: list[Row], mode: Mode | None = None) -> Plan:
    return reread(planner(rows, mode).plan({}))


def set_by(plan: Plan) -> dict[str, set[str]]:
    return {name: set(keys) for name, keys in sets(plan).items()}


@pytest.mark.parametrize("weight", [1024.0, None])
def test_jobs_take_turns_where_there_are_no_weights(weight) -> None:
    """As Slurm's on version 1, whose jobs have no controller cpu."""
    unknown = {"cpu_weight": weight, "cpu_limit_cores": None}
    found = plan_of(everywhere(SLURM_V1, **unknown))
    assert found.params["realize"] == "rotate"
    assert found.params["realize_why"] == (
        "up to 6 busy threads of 3 jobs on 2 CPUs: in order 422 s, in turns 533 s, side by side "
        "1587 s on average; "
        "the engine sets no weight on any job here: jobs take turns"
    )
    assert {action.op for action in found.actions} == {Op.ROTATE}
    assert set_by(found) == {name: {"group", "turn_s"} for name in JOBS}
    assert {name: one["group"] for name, one in sets(found).items()} == {"a": 0, "b": 1, "c": 2}


STAYS, STREAM = "and a plan that may stay", "a stream of plans, as from dl-probe -i, does"
NO_WEIGHT = "the engine sets no weight on any job here"


@pytest.mark.parametrize(
    ("mode", "rows", "why", "instead"),
    [
        (Mode.QUOTA, everywhere(SLURM_V1), "the engine sets no quota on any job here", "rotate"),
        (Mode.PRIORITY, everywhere(SLURM_V1), NO_WEIGHT, "rotate"),
        (Mode.ROTATE, everywhere(CRUN + "+pause"), "the engine pauses no job here", "quota"),
        (Mode.WEIGHT, everywhere(LOOK), NO_WEIGHT, ""),
        (Mode.WEIGHT, everywhere(CRUN), NO_WEIGHT, "quota or rotate"),
        (Mode.PRIORITY, everywhere(CRUN), NO_WEIGHT, "quota or rotate"),
        (Mode.WEIGHT, in_pods(CRI), APART, "quota"),
    ],
)
def test_a_mode_that_is_asked_for_and_cannot_be_done_is_refused(mode, rows, why, instead) -> None:
    way_out = f"--realize {instead} is possible" if instead else "it can only be looked at"
    said = f"--realize {mode} is not possible: {why}; {way_out}"
    made = planner(rows, mode)
    found = made.plan({})
    assert found.actions == ()
    assert found.nothing == made.explain().nothing == said
    assert found.params["realize_why"] == f"as asked; {said}"


@pytest.mark.parametrize("able", ["", "a"])
def test_where_fewer_than_two_may_be_paused_they_queue_by_weights(able) -> None:
    """As those with a health check: one that takes turns with nobody would compete with all."""
    rows = rows_for({name: None if name in able else "pause" for name in JOBS})
    found, plain = plan_of(rows, Mode.ROTATE), plan_of(everywhere(None), Mode.PRIORITY)
    why = "as asked; fewer than two jobs may be paused: they queue by weights"
    assert (found.params["realize_why"], sets(found)) == (why, sets(plain))
    assert {action.op for action in found.actions} == {Op.UPDATE}
    two = plan_of(rows_for({"a": "pause"}), Mode.ROTATE)
    assert {action.container_name for action in two.actions if action.op is Op.ROTATE} == {"b", "c"}


@pytest.mark.parametrize(
    ("mode", "setting"), [(Mode.QUOTA, "cpus"), (Mode.PRIORITY, "weight"), (None, "weight")]
)
def test_what_can_be_done_is_planned_as_ever(mode, setting) -> None:
    able, bound = plan_of(everywhere(None), mode), plan_of(everywhere(CRI), mode)
    assert able.actions == bound.actions
    assert {setting} in set_by(bound).values()


def test_jobs_in_pods_of_their_own_have_quotas() -> None:
    """Weights count among the containers of a pod; nothing can be paused unasked there."""
    found = plan_of(in_pods(CRI))
    assert (found.params["realize"], {one.op for one in found.actions}) == ("quota", {Op.UPDATE})
    assert found.params["realize_why"].endswith(f"on average; {APART}: jobs have quotas")
    assert {name for keys in set_by(found).values() for name in keys} == {"cpus"}


def test_quotas_in_pods_are_within_what_the_pods_ask_for() -> None:
    rows = in_pods(CRI, cpu_limit_cores=1.5, owner_cpu_limit_cores=1.5)
    set_ = [action.set["cpus"] for action in plan_of(rows).actions]
    assert set_
    assert max(set_) <= 1.5


def test_pods_that_allow_pauses_take_turns() -> None:
    assert plan_of(in_pods("cpuset+move")).params["realize"] == "rotate"


@pytest.mark.parametrize(("pods", "mode"), [("ppr", "priority"), ("pqr", "quota")])
def test_weights_count_for_those_that_share_a_pod(pods, mode) -> None:
    jobs = planner(in_pods(CRI, pods)).newest_hosts()[0].jobs()
    assert possible(ModeChoice(Mode.PRIORITY, "crowded"), jobs, is_asked=False).mode == mode


def test_jobs_alone_in_their_scopes_take_turns() -> None:
    assert plan_of(everywhere(CRUN)).params["realize"] == "rotate"


def test_where_other_programs_run_jobs_have_quotas_instead_of_turns() -> None:
    jobs = planner(everywhere(CRUN)).newest_hosts()[0].jobs()
    choice = ModeChoice(Mode.PRIORITY, "crowded")
    found = possible(choice, jobs, is_asked=False, others=0.3)
    assert (found.mode, found.unable) == (Mode.QUOTA, "")
    found = possible(replace(choice, mode=Mode.WEIGHT), jobs, is_asked=False)
    assert found.mode is Mode.QUOTA
    even = replace(choice, mode=Mode.WEIGHT, is_even=True)
    assert possible(even, jobs, is_asked=False) == even


def test_quotas_of_earlier_plans_are_taken_away_in_other_modes() -> None:
    state = reread(planner(in_pods(CRI)).plan({})).state
    later = in_pods(CRI, "ppp", cpu_limit_cores=0.2)
    later = [row | {"time": row["time"] + timedelta(seconds=5)} for row in later]
    found = planner(later, state=state).plan({})
    assert found.params["realize"] == "priority"
    assert {name: one["cpus"] for name, one in sets(found).items()} == dict.fromkeys(JOBS)


def test_members_in_several_pods_are_under_none_of_the_others() -> None:
    rows = in_pods(CRI)
    for row in rows:
        if row.get("container_name") in ("a", "b") and row["kind"] == "container":
            row |= {"job": "both", "job_containers": 2}
    job = planner(rows).newest_hosts()[0].containers["job:both"]
    assert job.in_force.cgroup_parent == "/kubepods/burstable/podp+/kubepods/burstable/podq"


@pytest.mark.parametrize(
    ("rows", "may_stay", "said"),
    [
        (everywhere(LOOK), False, f"{NO_WEIGHT}; it can only be looked at"),
        (in_pods(CRI), True, f"{APART}, {STAYS} sets no quotas: {STREAM}"),
        (everywhere(SLURM_V1), True, f"{NO_WEIGHT}, {STAYS} pauses nobody: {STREAM}"),
    ],
    ids=["only looked at", "no quotas", "no pauses"],
)
def test_a_plan_says_why_it_sets_nothing(rows, may_stay, said) -> None:
    found = planner(rows).plan({}, is_single=may_stay)
    assert (found.actions, found.nothing) == ((), said)


def test_turns_are_for_those_that_can_be_paused() -> None:
    """As pods on Kubernetes, of which some allow it."""
    rows = rows_for({"a": "cpuset+move", "b": "cpuset+move", "c": CRI})
    made = planner(rows, Mode.ROTATE)
    found = made.plan({})
    turns = [action.container_name for action in found.actions if action.op is Op.ROTATE]
    assert sorted(turns) == ["a", "b"]
    (beside,) = (one for one in made.explain().decisions if one.name == "c")
    assert beside.setting is None or set(beside.setting) == {"weight"}
    assert "runs beside the turns" in beside.reason
    assert "its engine does not pause it" in beside.reason


def test_what_one_container_cannot_have_is_left_out() -> None:
    made = planner(rows_for({"b": "cpu_weight"}), Mode.PRIORITY)
    assert set_by(made.plan({})) == {"c": {"weight"}}
    (without,) = (one for one in made.explain().decisions if one.name == "b")
    assert without.setting is None
    assert without.reason.endswith("its engine sets no weight on it")


def test_members_of_a_job_can_do_what_all_of_them_can() -> None:
    rows = rows_for({"a": "pause", "b": "cpuset"})
    for row in rows:
        if row.get("container_name") in ("a", "b") and row["kind"] == "container":
            row |= {"job": "both", "job_containers": 2}
    job = planner(rows).newest_hosts()[0].containers["job:both"]
    assert job.in_force.cannot == {"pause", "cpuset"}


def test_the_state_keeps_what_cannot_be_done() -> None:
    rows = everywhere(SLURM_V1)
    whole = planner(rows).plan({})
    state = reread(planner(rows[:-20]).plan({})).state
    assert planner(rows[-40:], state=state).plan({}).actions == whole.actions
    assert "cannot" not in str(planner(everywhere(None)).plan({}).state)


@pytest.mark.parametrize("cut", range(1, 12))
def test_what_a_host_cannot_do_is_known_wherever_a_recording_is_cut(cut) -> None:
    rows = [row for row in everywhere(CRI) if row["time"] < at(8)]
    for row in rows:
        if row["kind"] == "node":
            row["cannot"] = "cpuset+move" if row["time"] >= at(4) else None
    whole = planner(rows)
    state = reread(planner(rows[:-cut]).plan({})).state
    for made in (whole, planner(rows[-cut:], state=state)):
        assert made.newest_hosts()[0].cannot == {"cpuset", "move"}
    assert planner(rows[:9]).newest_hosts()[0].cannot == frozenset()


def test_no_plan_moves_jobs_to_hosts_that_take_none() -> None:
    """A Docker host whose jobs converge, beside an idle host of another engine."""
    moves = {}
    for cannot in (None, "cpus+cpu_weight+cpuset+pause+move"):
        rows = crowded()
        rows += [node(now, host="other") | {"cannot": cannot} for now in range(0, 300, 5)]
        made = observed_rows.planner("specon")
        found: list[Action] = []
        for begin in range(0, 300, 5):
            one = [row for row in rows if at(begin) <= row["time"] < at(begin + 5)]
            found += reread(having_read(made, one).plan({})).actions
        moves[cannot] = {action.to for action in found if action.op is Op.MIGRATE}
    assert [*moves.values()] == [{"other"}, set()]


def crowded() -> list[Row]:
    rows = []
    for now in range(0, 300, 5):
        rows.append(node(now))
        for number, name in enumerate(JOBS):
            rows.append(container(now, name, 20 + now / 2, thread_count=2))
            loss = 0.5 + math.exp(-now / (5 if number else 300))
            rows.append(point(now - 0.1, name, loss))
    return rows


def test_a_job_that_cannot_move_is_not_chosen() -> None:
    hosts = {what: planner(everywhere(what)).newest_hosts()[0].state() for what in ("", "move")}
    known = {job.run_id: KnownJob() for job in hosts[""].jobs}
    now = Cluster(0, "", hosts, 20.0)
    free = {cannot: load_of(host, known, (), now, "jobs").free for cannot, host in hosts.items()}
    assert free == {"": 3, "move": 0}
    assert job_id("a") in hosts[""].previous
