"""What a container is, and when its processes are searched."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.located_containers import container
from hypothesis import given
from hypothesis import strategies as st

from dltools.engine.cgroup import Cgroup
from dltools.engine.interface import Container
from dltools.engine.process_search import OpenMP, Processes
from dltools.observations.roles import NO_RULES, Rules, parse_rule
from dltools.probe import container_watch
from dltools.probe.container_watch import ProcessWatch, RoleWatch, Searchable, search_due
from dltools.probe.progress import Point

GROUP = Cgroup({}, None)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str | None]]:
    """Look at a container at times, with numbers of threads; return what was found at each. The
    n-th search finds the runtime n."""

    def look(
        *looks: tuple[float, int | None], is_known: bool = True, finds: tuple[str, ...] = ()
    ) -> list[str | None]:
        numbers = iter(range(1, 99))
        monkeypatch.setattr(
            container_watch,
            "search",
            lambda _pids, **_: Processes(OpenMP(str(next(numbers))), finds),
        )
        watch = ProcessWatch()
        found = []
        for now, threads in looks:
            monkeypatch.setattr("time.monotonic", lambda now=now: now)
            search_due([Searchable(watch, GROUP, threads, is_known)], math.inf)
            found.append(watch.found.openmp.runtime)
        return found

    return look


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        ([(0, 2), (1, 2), (100, 2), (1000, 2)], "1111"),  # its threads stay
        ([(0, 1), (0.5, 2), (1, 4), (1.5, 4)], "1233"),  # more than ever before: at once
        ([(0, None), (1, None), (30, None), (31, None)], "1122"),  # unknown: twice a minute
    ],
)
def test_how_often_a_container_is_searched(searches, looks, found) -> None:
    assert "".join(searches(*looks)) == found


def test_threads_that_come_and_go_are_searched_twice_a_minute(searches) -> None:
    looks = [(second, 4 + second % 2) for second in range(64)]
    assert searches(*looks)[-1] == "4"  # at 0, 1, 32 and 63 s


SECONDS = [(float(second), 2) for second in range(100)]


def test_what_nothing_tells_of_is_searched_again_after_as_long(searches) -> None:
    found = searches(*SECONDS, is_known=False)
    changes = [n for n in range(1, len(found)) if found[n] != found[n - 1]]
    assert changes == [1, 2, 4, 8, 16, 32, 64]


def test_what_a_runtime_tells_of_is_searched_once(searches) -> None:
    assert set(searches(*SECONDS, is_known=False, finds=("libtorch",))) == {"1"}


class Host:
    """Containers of which nothing tells what they are. A search takes `cost_s`; the clock of the
    budget stands still otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost_s: float = 0.5) -> None:
        self.watches: dict[str, ProcessWatch] = {}
        self.threads: dict[str, int] = {}
        self._clock = self._now = 0.0
        self._taken = 0

        def search(_pids: object, **_: object) -> Processes:
            self._clock += cost_s
            self._taken += 1
            return Processes(OpenMP(str(self._taken)))

        monkeypatch.setattr(container_watch, "search", search)
        clocks = SimpleNamespace(monotonic=lambda: self._now, perf_counter=lambda: self._clock)
        monkeypatch.setattr(container_watch, "time", clocks)

    def start(self, *names: str) -> None:
        for name in names:
            self.watches[name], self.threads[name] = ProcessWatch(), 1

    def due(self, now: float) -> set[str]:
        return {
            name
            for name, watch in self.watches.items()
            if watch.is_due(now, self.threads[name], is_known=False)
        }

    def sample(self, now: float, budget_s: float = 1.0) -> list[str]:
        """Take a sample; return the containers that were searched, in this order."""
        before = {name: watch.found for name, watch in self.watches.items()}
        self._now = now
        search_due(
            [
                Searchable(watch, GROUP, self.threads[name], is_known=False)
                for name, watch in self.watches.items()
            ],
            budget_s,
        )
        changed = [name for name, watch in self.watches.items() if watch.found is not before[name]]
        return sorted(changed, key=lambda name: int(self.watches[name].found.openmp.runtime or 0))


NAMES = [f"c{number}" for number in range(10)]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """Ten containers that have been searched at 0 s."""
    made = Host(monkeypatch)
    made.start(*NAMES)
    assert made.sample(0) == NAMES  # all that were never searched are searched at once
    return made


def test_a_sample_searches_as_many_again_as_its_budget_allows(host) -> None:
    """All ten are due after 2 s; two searches of half a second fill a budget of one."""
    rounds = [host.sample(2 + tick / 10) for tick in range(6)]
    assert [len(found) for found in rounds] == [2, 2, 2, 2, 2, 0]
    assert sorted(name for found in rounds for name in found) == NAMES


def test_without_a_budget_one_is_searched_again(host) -> None:
    assert [len(host.sample(2, 0.0)) for _ in range(3)] == [1, 1, 1]


def test_a_single_run_searches_all(host) -> None:
    assert len(host.sample(2, math.inf)) == 10


def test_a_newcomer_goes_before_a_hundred_that_wait(monkeypatch) -> None:
    """At an interval of 2 s it is searched at its first and its second sample."""
    host = Host(monkeypatch)
    host.start(*(f"old{number}" for number in range(100)))
    host.sample(0)
    host.start("new")
    assert host.sample(64) == ["new", "old0", "old1"]
    assert host.sample(65.9)[0] == "new"
    assert "new" not in host.sample(67)


def test_one_that_has_new_threads_waits_for_a_few_samples(host) -> None:
    host.threads = dict.fromkeys(NAMES, 2)
    rounds = [host.sample(1 + tick / 100) for tick in range(5)]
    assert sorted(name for found in rounds for name in found) == NAMES


@given(data=st.data(), budget=st.floats(0, 3), cost=st.floats(0.01, 2))
def test_every_one_that_is_due_has_its_turn(data, budget, cost) -> None:
    """No later than after as many samples as containers, whoever else comes or grows."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        host = Host(monkeypatch, cost)
        host.start(*NAMES)
        host.sample(0)
        waits = dict.fromkeys(NAMES, 0)
        for tick in range(1, 40):
            now = 11.0 + tick * 2
            for name in data.draw(st.sets(st.sampled_from(NAMES), max_size=2)):
                host.threads[name] += 1
            due = host.due(now)
            found = host.sample(now, budget)
            assert len(found) <= 1 + math.ceil(budget / cost)
            for name in NAMES:
                waits[name] = waits[name] + 1 if name in due and name not in found else 0
                assert waits[name] <= len(NAMES)


TORCH = Processes(runtimes=("libtorch",))


def made(command: str = "sh -c job", labels: dict[str, str] | None = None, **raw: Any) -> Container:
    path, *arguments = command.split()
    return container({"Path": path, "Args": arguments, **raw}, labels=labels or {})


PUBLISHED = {"HostConfig": {"PortBindings": {"5432/tcp": [{"HostPort": ""}]}}}
INGRESS = {"NetworkSettings": {"Networks": {"ingress": {}, "lab": {}}}}
TASK = {"com.docker.swarm.task.id": "t", "com.docker.swarm.service.name": "api"}
SHOWN = {"NetworkSettings": {"Ports": {"80/tcp": [{"HostPort": "8080"}], "81/tcp": None}}}


@pytest.mark.parametrize(
    ("container", "processes", "device", "expected"),
    [
        (made(), None, "", "other: no sign of a training; its processes cannot be read"),
        (made(), Processes(), "", "other: no sign of a training"),
        (made(), TORCH, "", "training: libtorch in its processes, silent"),
        (made(), Processes(), "GPU", "training: uses a GPU, silent"),
        (made(**PUBLISHED), TORCH, "GPU", "server: publishes port 5432"),
        (made(**SHOWN), None, "", "server: publishes port 80"),
        (made(labels=TASK, **INGRESS), TORCH, "GPU", "server: its Swarm service publishes a port"),
        (made(**INGRESS), TORCH, "GPU", "training: libtorch in its processes, silent"),
        (made("jupyter lab", **PUBLISHED), TORCH, "GPU", "interactive: jupyter-lab"),
        (made(labels={"dltools.qoe": "1"}, **PUBLISHED), TORCH, "",
         "server: response-time target 1"),
        (made("jupyter lab", {"dltools.role": "training"}), None, "",
         "training: label dltools.role=training"),
    ],
)  # fmt: skip
def test_signs(container, processes, device, expected) -> None:
    assert RoleWatch().look(container, NO_RULES, processes, device).text == expected


def test_a_report_is_stronger_than_a_port_and_a_notebook_and_stays() -> None:
    watch, container = RoleWatch(), made("jupyter lab", **PUBLISHED)
    assert watch.look(container, NO_RULES, TORCH, "").text == "interactive: jupyter-lab"
    watch.note([Point("loss", 0.5, None, 3.0, "keras", "loss")], {})
    watch.note([Point("loss", 0.5, None, None, "named", "loss")], {})
    assert watch.look(container, NO_RULES, TORCH, "").text == "training: reports loss"
    assert watch.look(container, NO_RULES, None, "").text == "training: reports loss"


@pytest.mark.parametrize(
    ("point", "labels", "is_known"),
    [
        (Point("loss", 0.5, 7, None, "named", "loss"), {}, True),
        (Point("loss", 0.5, None, None, "named", "loss"), {}, False),
        (Point("loss", 0.5, None, None, "pattern", "loss"), {}, True),  # somebody has said it
        (Point("loss", 0.5, None, None, "named", "loss"), {"dltools.metric": "loss"}, True),
        (Point("packet_loss", 0.5, 7, None, "named", "packet loss"), {}, False),
        (Point("latency_seconds", 0.5, None, None, "latency", "latency"), {}, True),
    ],
)
def test_processes_are_searched_until_reports_show_the_role(point, labels, is_known) -> None:
    watch = RoleWatch()
    watch.note([point], labels)
    assert watch.is_known is is_known


def test_the_user_overrules_all() -> None:
    rules = Rules([parse_rule("label:team=x=other")])
    container = made(labels={"team": "x", "dltools.role": "training"})
    watch = RoleWatch()
    watch.note([Point("loss", 0.5, 7, None, "keras", "loss")], container.labels)
    found = watch.look(container, rules, TORCH, "GPU")
    assert found.text == "other: --role label:team=x=other"
