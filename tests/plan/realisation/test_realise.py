"""What all modes do alike."""

import pytest
from helpers.shared_hosts import first_jobs, host, job, realised, settings_of

from dltools.plan.policy.interface import Allocation, HostState
from dltools.plan.realisation.mode import ModeChoice
from dltools.plan.realisation.options import Mode
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import InForce, Owner
from dltools.plan.signals.resource_use import CpuDemand


def test_unlimited_jobs_take_turns_with_the_first_and_converged_jobs_stand_behind() -> None:
    jobs = tuple(job(name, 2) for name in ("known", "flat", "new"))
    allocations = {
        "known": Allocation(0.4, "-", ""),
        "flat": Allocation(0.6, "-", "", rank=2),
        "new": Allocation(1.0, "-", "", unlimited=True),
    }
    found = HostState("h", 2.0, jobs, allocations)
    assert list(first_jobs(found, [0, 5, 10, 15])) == ["known", "new", "known", "new"]
    assert settings_of(Mode.QUOTA, found)["new"] == {"cpus": None}
    assert settings_of(Mode.WEIGHT, found)["new"] == {"weight": 1024}
    # The mean share of turns.
    assert settings_of(Mode.ROTATE, found)["new"]["turn_s"] == pytest.approx(8, abs=1e-3)


@pytest.mark.parametrize(
    ("mode", "setting"),
    [
        (Mode.QUOTA, {"cpus": None}),
        (Mode.WEIGHT, {"weight": 1024}),
        (Mode.PRIORITY, {"weight": 1024}),
        (Mode.ROTATE, {"weight": 1024}),
    ],
)
def test_a_restarted_container_gets_the_defaults(mode, setting) -> None:
    again = ContainerHistory("again", "again", 0, managed=True)
    other = ContainerHistory("other", "other", 0, in_force=InForce({"weight": 512.0}))
    two = host(job("a"), job("b"), shares={"a": 0.5, "b": 0.5})
    found = realised(ModeChoice(mode, ""), two, silent=(again, other))
    assert found.settings.get("again") == setting
    assert "other" not in found.settings
    # The same where no other job runs.
    assert realised(ModeChoice(mode, ""), host(), silent=(again,)).settings.get("again") == setting


def test_a_silent_container_with_the_weight_of_a_waiting_job_gets_the_default() -> None:
    left = ContainerHistory("left", "left", 0, in_force=InForce({"weight": 2.0}))
    acting = host(job("a"), shares={"a": 1.0})
    found = realised(ModeChoice(Mode.PRIORITY, ""), acting, silent=(left,))
    assert found.settings["left"] == {"weight": 1024}
    idle = host(job("a"), shares={"a": None})
    assert realised(ModeChoice(Mode.PRIORITY, ""), idle, silent=(left,)).settings == {}


@pytest.mark.parametrize("mode", Mode)
def test_without_a_share_nothing_is_set(mode) -> None:
    assert settings_of(mode, host(job("a"), job("b"), shares={"a": None, "b": None})) == {}
    assert settings_of(mode, host(job("a"), cpus=0.0, shares={"a": 0.5})) == {}


@pytest.mark.parametrize("mode", [Mode.PRIORITY, Mode.ROTATE])
def test_an_idle_job_holds_no_place(mode) -> None:
    jobs = [job(name, 2) for name in ("a", "b", "c")]
    asleep = jobs[0]
    asleep.use.cpu, asleep.use.samples = CpuDemand(quiet_since=0), [(9_000_000, 1.0)]
    found = realised(ModeChoice(mode, ""), host(*jobs, shares=dict.fromkeys("abc", 1 / 3)))
    assert found.settings.get("a") == {"weight": 1024}
    assert found.notes["a"] == "uses next to no CPU: holds no place"
    others = [found.settings[name] for name in ("b", "c")]
    assert others[0] != others[1]


def test_a_job_that_is_not_understood_gets_turns_as_long_as_the_others() -> None:
    jobs = tuple(job(name, 2) for name in ("known", "silent"))
    found = HostState("h", 2.0, jobs[:1], {"known": Allocation(1.0, "-", "")})
    given = realised(ModeChoice(Mode.ROTATE, ""), found, silent=jobs[1:], competing=jobs[1:])
    lengths = {name: given.settings[name]["turn_s"] for name in ("known", "silent")}
    assert lengths == {"known": 8.0, "silent": 8.0}


def test_a_group_has_turns_by_what_its_members_can_use() -> None:
    wide, small, other = job("wide", 2), job("small", 2), job("other", 2)
    small.owner = Owner(cpus=0.5)
    shares = dict.fromkeys(("wide", "small", "other"), 1 / 3)
    found = host(wide, small, other, cpus=2.0, shares=shares)
    given = realised(ModeChoice(Mode.ROTATE, ""), found).settings
    assert given["other"]["group"] == given["small"]["group"] != given["wide"]["group"]
    # Least squares: 2 * (2/3 + 0.5/3) / (4 + 0.25) of the time against 1/3.
    part = 2 * (2.5 / 3) / 4.25
    assert given["other"]["turn_s"] == pytest.approx(16 * part / (part + 1 / 3), abs=1e-3)


@pytest.mark.parametrize("mode", [Mode.WEIGHT, Mode.PRIORITY])
def test_weights_are_compared_under_one_cgroup_alone(mode) -> None:
    jobs = [job(name, 2) for name in "abcd"]
    for one, parent in zip(jobs, ("/docker", "/docker", "/batch", None), strict=True):
        one.in_force = one.in_force._replace(cgroup_parent=parent)
    shares = {"a": 0.5, "b": 0.3, "c": 0.1, "d": 0.1}
    found = realised(ModeChoice(mode, ""), host(*jobs, shares=shares))
    assert found.settings["c"] == {"weight": 1024}
    assert found.notes["c"] == "under /batch, others under /docker: weights do not compare"
    if mode is Mode.PRIORITY:
        assert [found.settings[name]["weight"] for name in "abd"] == [1024, 10, 2]


@pytest.mark.parametrize("mode", [Mode.QUOTA, Mode.ROTATE])
def test_quotas_and_turns_hold_under_any_cgroup(mode) -> None:
    jobs = [job(name, 2) for name in "ab"]
    jobs[0].in_force = InForce(cgroup_parent="/docker")
    jobs[1].in_force = InForce(cgroup_parent="/batch")
    found = realised(ModeChoice(mode, ""), host(*jobs, shares={"a": 0.5, "b": 0.5}))
    assert found.settings.keys() == {"a", "b"}
    assert len({tuple(one) for one in found.settings.values()}) == 1


@pytest.mark.parametrize(("mode", "sets"), [(Mode.QUOTA, "cpus"), (Mode.ROTATE, "weight")])
def test_what_earlier_plans_have_set_and_a_mode_does_not_goes_back(mode, sets) -> None:
    earlier = job("a")
    earlier.owner = Owner(planned={"cpus": (0.5,), "weight": (10.0,), "cpuset": ("0",)})
    found = settings_of(mode, host(earlier, job("b"), shares={"a": 0.5, "b": 0.5}))
    begin = {"cpus": None, "weight": 1024.0, "cpuset": None}
    del begin[sets]
    assert begin.items() <= found["a"].items()
    assert not begin.keys() & found["b"].keys()
