"""The choice of a migration, and each reason why there is none, worked by hand.

Hosts have two CPUs. What a job still needs is unknown, so it is taken to be what it has had.
"""

from collections.abc import Collection, Mapping

import pytest
from helpers.histories import ONE_POINT, history

from dltools.notation.times import MICRO
from dltools.plan.policy.interface import Cluster, HostState
from dltools.plan.policy.specon import (
    CONVERGED,
    PROGRESSING,
    WATCHING,
    Choice,
    Chooser,
    KnownJob,
    OwnJobs,
    Parameters,
    load_of,
    saved_seconds,
)
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.in_force import InForce, Membership

NOW_S = 100.0
Classes = Mapping[str, Mapping[str, str]]
P, W, C = PROGRESSING, WATCHING, CONVERGED


def job(name: str, attained: float = 50.0) -> ContainerHistory:
    """A job that has used its CPU seconds evenly until now."""
    return history(ONE_POINT, [(0, 0), (NOW_S, attained)], started_s=0, name=name)


def host(name: str, jobs: Collection[ContainerHistory], cpus: float = 2.0) -> HostState:
    return HostState(name, cpus, tuple(jobs))


def choice(
    classes: Classes,
    growths: Mapping[str, float] | None = None,
    cpus: Mapping[str, float] | None = None,
    moved: Collection[str] = (),
    load: str = "progressing",
    pause_s: float = 0.0,
    attained: Mapping[str, float] | None = None,
    sampled: str | None = None,
    cannot: Mapping[str, str] | None = None,
) -> Choice:
    """The choice among jobs whose classes are given for each host, by name, in a round of the first
    host or another. A host, and each of its jobs, cannot do what is given."""
    hosts, known = {}, {}
    for name, own in classes.items():
        jobs = [job(one, (attained or {}).get(one, 50.0)) for one in own]
        unable = frozenset(filter(None, (cannot or {}).get(name, "").split("+")))
        for one in jobs:
            one.in_force = InForce(cannot=unable)
        hosts[name] = HostState(name, (cpus or {}).get(name, 2.0), tuple(jobs), cannot=unable)
        known[name] = {
            one.run_id: KnownJob(1.0, own[one.name], (growths or {}).get(one.name, 0.01))
            for one in jobs
        }
    cluster = Cluster(round(NOW_S * MICRO), sampled or next(iter(hosts)), hosts, 10.0)
    return chooser(cluster, known, moved, load, pause_s).choose()


def chooser(
    cluster: Cluster,
    known: Mapping[str, OwnJobs],
    moved: Collection[str] = (),
    load: str = "progressing",
    pause_s: float = 0.0,
) -> Chooser:
    """What chooses in a cluster in which each host has had a round."""
    loads = {
        name: load_of(one, known.get(name, {}), moved, cluster, load)._asdict()
        for name, one in cluster.hosts.items()
        if one.cpus > 0
    }
    parameters = Parameters(load=load, pause=pause_s, stale=60.0)
    return Chooser(cluster, loads, known.get(cluster.sampled, {}), moved, parameters)


def migrated(found: Choice) -> tuple[str, str]:
    """The job, and where it goes."""
    assert found.job is not None, found.why
    return found.job.name, found.target


# Why there is no migration


BUSY = {"a": P, "c": C}
PAIR: Classes = {"h": BUSY, "i": {}}
NO_CANDIDATE = Choice("no migration: no host holds a converged job next to a progressing one")


@pytest.mark.parametrize(
    "classes",
    [
        {"h": {"a": C, "c": C}, "i": {"d": P}},
        {"h": {"a": W, "c": C}, "i": {"d": P}},
        {"h": {"a": P, "b": W}, "i": {"d": C}},  # no idle host, and none has converged
        {"h": {"a": P}, "i": {}},
        {"h": {"a": C}, "i": {}},
    ],
)
def test_no_job_moves_but_a_converged_one_next_to_a_progressing_one(classes) -> None:
    assert choice(classes) == NO_CANDIDATE


def test_a_job_that_was_moved_stays() -> None:
    assert choice({"h": BUSY, "i": {"d": C}}, moved=["c"]) == NO_CANDIDATE


def test_a_target_is_another_host_that_is_less_loaded() -> None:
    for found in (choice({"h": BUSY}), choice(PAIR, cpus={"i": 0.0})):  # of unknown size
        assert found == Choice("no migration: no other host is known")
    # h has one progressing job and one more, i has one progressing job: it would be h's mirror.
    found = choice({"h": BUSY, "i": {"d": P}})
    assert found == Choice("no migration: c on i would not lower the heaviest load")


@pytest.mark.parametrize(("pause_s", "costs"), [(60.0, "10"), (50.0, "0")])
def test_a_migration_must_save_more_than_it_costs(pause_s, costs) -> None:
    # c needs 50 CPU s: 50 s here with a, 25 s alone on i; a is rid of it and saves 25 s too.
    found = choice(PAIR, pause_s=pause_s)
    assert found == Choice(f"no migration: c to i would cost {costs} s more than it saves")


# The choice


def test_a_converged_job_next_to_a_progressing_one_moves() -> None:
    found = choice(PAIR, pause_s=20.0)
    assert migrated(found) == ("c", "i")
    assert found.why == "c to i saves 30 job seconds (predicted: it gains 50 and costs 20)"
    found = choice(PAIR, pause_s=49.5)
    assert found.why.startswith("c to i saves 0.5 job seconds")


def test_a_job_more_on_the_target_may_leave_it_less_loaded_than_the_source_was() -> None:
    assert migrated(choice(PAIR, load="jobs")) == ("c", "i")  # one job on each


def test_the_converged_job_that_grows_least_moves() -> None:
    hosts: Classes = {"h": {"a": P, **dict.fromkeys("bcd", C)}, "i": {}}
    assert migrated(choice(hosts, {"b": 0.03, "c": 0.01, "d": 0.02}))[0] == "c"
    assert migrated(choice(hosts))[0] == "b"  # equal growth: by name


def test_an_idle_host_takes_any_job_where_none_has_converged() -> None:
    hosts: Classes = {"h": {"a": P, "b": P}, "i": {}}
    assert migrated(choice(hosts, {"a": 0.9, "b": 0.5})) == ("b", "i")
    hosts = {"h": {"a": W, "b": C}, "i": {}}
    assert migrated(choice(hosts)) == ("b", "i")


def test_a_job_of_the_heaviest_host_that_has_a_candidate_moves() -> None:
    hosts: Classes = {"h": BUSY, "i": {"d": P, "e": P, "f": C}, "j": {"g": C}}
    assert choice(hosts) == Choice("")  # in a round of h
    assert migrated(choice(hosts, sampled="i")) == ("f", "j")
    # Where f has to stay the heaviest host has no candidate, and the next one is asked. c saves
    # time on the four CPUs of j.
    assert migrated(choice(hosts, moved=["f"], cpus={"j": 4.0})) == ("c", "j")


def test_an_unknown_job_counts_as_progressing() -> None:
    a, c = job("a"), job("c")
    hosts = {"h": host("h", [a, c]), "i": host("i", [])}
    cluster = Cluster(round(NOW_S * MICRO), "h", hosts, 10.0)
    known = {"h": {c.run_id: KnownJob(1.0, C, 0.01)}}
    assert migrated(chooser(cluster, known).choose()) == ("c", "i")


@pytest.mark.parametrize(
    ("load", "target"), [("progressing", "few progressing"), ("jobs", "few"), ("cpu", "idle CPU")]
)
def test_the_target_is_the_host_with_the_least_load_of_the_kind_asked_for(load, target) -> None:
    # Loads (progressing, jobs, CPU in shares of two CPUs over 100 s):
    hosts: Classes = {
        "source": dict.fromkeys("abcd", P) | {"e": C},  # 4, 5, 1.25
        "few progressing": dict.fromkeys("fgh", W),  # 0, 3, 0.75
        "few": {"k": P},  # 1, 1, 0.25
        "idle CPU": {"l": P, "m": P},  # 2, 2, 0.01
    }
    found = choice(hosts, load=load, attained={"l": 1.0, "m": 1.0}, cpus={"source": 2.0})
    assert migrated(found) == ("e", target)


def test_a_container_that_makes_a_job_with_others_does_not_count_as_free_to_move() -> None:
    one = job("c")
    one.membership = Membership("ranks")
    state = host("h", [job("a"), one])
    known = {one.run_id: KnownJob(1.0, C, 0.01)}
    cluster = Cluster(round(NOW_S * MICRO), "h", {"h": state}, 10.0)
    found = load_of(state, known, (), cluster, "progressing")
    assert (found.jobs, found.free, found.converged) == (2, 1, 0)


# What it saves


def test_the_neighbours_on_both_hosts_count() -> None:
    # 40 CPU s: here 40 * 3 / 2 = 60 s, there 40 * 2 / 4 = 20 s. The job itself saves 40 s less the
    # pause; its two neighbours are rid of it, 60 * 2 / 3 = 40 s; the new one bears 20 * 1 / 2.
    one = job("c", attained=40.0)
    source = host("h", [job("a"), job("b"), one])
    target = host("i", [job("d")], cpus=4.0)
    assert saved_seconds(one, source, target, 15.0) == pytest.approx(40 - 15 + 40 - 10)


def test_what_a_job_still_needs_is_predicted_where_that_is_possible() -> None:
    # 5 of 10 epochs took 50 CPU s: 50 left; 8 of 10: 12.5 left. On an idle host they save as much.
    one = job("c")
    one.label({"dltools.epochs": "10"})
    source, target = host("h", [job("a"), one]), host("i", [])
    for epoch, saves in ((5.0, 50.0), (8.0, 12.5)):
        one.progress.epoch = epoch
        assert saved_seconds(one, source, target, 0.0) == saves


def test_the_learning_curve_predicts_what_a_job_needs_to_its_target() -> None:
    # The loss falls from 10 by 1 every CPU second; at 50 CPU s it would be -40. Half a core.
    labels = {"dltools.metric": "loss", "dltools.target": "-60"}
    points = {"loss": [(s, 10 - s / 2) for s in range(1, 101)]}
    one = history(points, [(0, 0), (NOW_S, 50)], labels, name="c")
    source, target = host("h", [job("a"), one]), host("i", [])
    # 20 CPU s left: it saves 20 - 10 s, and its neighbour 10 s.
    assert saved_seconds(one, source, target, 0.0) == pytest.approx(20.0, rel=0.1)


# Hosts that are not sampled


def test_a_host_that_was_not_sampled_of_late_takes_no_job() -> None:
    now = round(NOW_S * MICRO)
    late, fresh = now - 61 * MICRO, now - 60 * MICRO
    jobs = [job("a"), job("c")]
    known = {one.run_id: KnownJob(1.0, C if one.name == "c" else P, 0.01) for one in jobs}

    def between(source: int, target: int) -> Choice:
        hosts = {
            "h": HostState("h", 2.0, tuple(jobs), sampled_at=source),
            "i": HostState("i", 2.0, (), sampled_at=target),
            "k": HostState("k", 2.0, (job("d"),), sampled_at=now),
        }
        return chooser(Cluster(now, "h", hosts, 10.0), {"h": known}).choose()

    assert migrated(between(fresh, fresh)) == ("c", "i")
    assert between(fresh, late).job is None


# Hosts whose engines move nothing


CROWDED = BUSY | {"e": C}


def test_no_job_moves_to_a_host_that_takes_none() -> None:
    """Docker hosts beside cgroups that no engine has made."""
    classes = {"docker-1": CROWDED, "cgroups": {}, "docker-2": {"f": C}}
    assert migrated(choice(classes, cannot={"cgroups": "move"})) == ("c", "docker-2")
    assert migrated(choice(classes))[1] == "cgroups"


@pytest.mark.parametrize("busy", ["docker", "cgroups"])
def test_one_host_alone_that_takes_jobs_gets_none(busy) -> None:
    classes = {name: CROWDED if name == busy else {} for name in ("docker", "cgroups")}
    found = choice(classes, cannot={"cgroups": "cpuset+move"})
    assert found == Choice("no migration: no host but docker takes jobs from others")


def test_no_host_that_takes_jobs_is_no_target() -> None:
    found = choice(PAIR, cannot={"h": "move", "i": "move"})
    assert found == Choice("no migration: no host that takes jobs was sampled recently")
