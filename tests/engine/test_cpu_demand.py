"""How many CPUs a container's threads want, and how many of them are busy."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ReplaceSleep

from dltools.engine import cpu_demand, kernel_reading
from dltools.engine.cgroup import Cgroup
from dltools.engine.cpu_demand import DemandWatch

Threads = dict[int, tuple[float, float]]
"""By number: for how long each thread has run, and has waited for a CPU (s)."""

Looks = Callable[..., list[float | None]]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Look at a container's threads at times; return the demand at each."""

    def look(
        *states: tuple[float, Threads],
        used: float | list[float] = 1.0,
        ready: frozenset[int] = frozenset(),
        **options: bool,
    ) -> list[float | None]:
        watch, found = DemandWatch(), []
        seconds = used if isinstance(used, list) else [used] * len(states)
        for (now, threads), spent in zip(states, seconds, strict=True):
            files = {
                f"/proc/{tid}/schedstat": f"{round(ran * 1e9)} {round(waited * 1e9)} 7\n"
                for tid, (ran, waited) in threads.items()
            }
            born = " ".join(["0"] * 19 + [str(90 * cpu_demand._TICKS)])
            files |= {f"/proc/{tid}/stat": f"{tid} (a) b) {born}" for tid in threads}
            files |= {f"/proc/{tid}/stat": f"{tid} (a) R {born}" for tid in ready & set(threads)}
            read = lambda path, files=files: files.get(path.replace("//", "/"), "")  # noqa: E731
            monkeypatch.setattr(cpu_demand, "read_text", read)
            monkeypatch.setattr(kernel_reading, "read_text", read)
            monkeypatch.setattr("time.monotonic", lambda now=now: now)
            monkeypatch.setattr("time.clock_gettime", lambda _clock, now=now: 100.0 + now)
            group = SimpleNamespace(threads=[*threads, 99])
            found.append(watch.look(group, spent, **options))  # type: ignore[arg-type]
        return found

    return look


def test_a_thread_that_waits_wants_a_cpu_and_one_that_sleeps_does_not(looks) -> None:
    first = {1: (1.0, 0.0), 2: (1.0, 0.0), 3: (4.0, 0.0)}
    then = {1: (2.0, 0.0), 2: (1.1, 0.9), 3: (4.0, 0.0)}
    assert looks((0.0, first), (1.0, then))[1] == pytest.approx(2.0)


def test_the_first_look_is_over_the_lives_of_the_threads(looks) -> None:
    assert looks((0.0, {1: (10.0, 0.0), 2: (1.0, 4.0), 3: (0.0, 0.0)})) == [pytest.approx(1.5)]


def test_a_long_wait_that_ends_counts_for_no_more_than_one_cpu(looks) -> None:
    assert looks((0.0, {1: (1.0, 0.0)}), (1.0, {1: (1.2, 5.0)}))[1] == 1.0


def test_a_new_thread_counts_from_its_start(looks) -> None:
    assert looks((0.0, {1: (1.0, 0.0)}), (2.0, {1: (3.0, 0.0), 2: (0.5, 0.5)}))[1] == 1.5


def test_of_a_container_that_takes_turns_the_busiest_thread_is_whole(looks) -> None:
    states = (0.0, {1: (1.0, 0.0), 2: (1.0, 0.0)}), (10.0, {1: (3.0, 0.0), 2: (2.0, 0.0)})
    assert looks(*states, may_be_frozen=True)[1] == pytest.approx(1.5)


def test_nothing_is_known_where_the_kernel_does_not_count(looks) -> None:
    assert looks((0.0, {}), (1.0, {1: (0.0, 0.0)})) == [None, None]


def test_nothing_is_known_of_threads_that_came_and_went(looks) -> None:
    """A shell that starts a process for each step: how long these waited is lost with them."""
    shell = (0.0, {1: (0.1, 0.0)}), (2.0, {1: (0.2, 0.0)}), (4.0, {1: (2.2, 0.0)})
    assert looks(*shell, used=[0.1, 1.5, 3.5])[1:] == [None, pytest.approx(1.0)]


def test_a_little_of_threads_that_came_and_went_counts_as_used(looks) -> None:
    job = (0.0, {1: (1.0, 0.0)}), (2.0, {1: (2.8, 0.2)})
    assert looks(*job, used=[1.0, 3.2])[1] == pytest.approx(1.1)


def test_nothing_is_known_at_first_of_a_container_whose_threads_are_gone(looks) -> None:
    assert looks((0.0, {1: (0.1, 0.0), 2: (0.1, 0.1)}), used=[3.0]) == [None]


def test_a_thread_that_is_ready_and_has_not_run_wants_a_cpu_all_the_time(looks) -> None:
    """The kernel counts its wait when it ends, which may be seconds later."""
    first = {1: (1.0, 0.5), 2: (1.0, 0.0), 3: (4.0, 0.0)}
    then = first | {2: (1.1, 0.2)}
    starving = frozenset({1})
    found = looks((0.0, first), (1.0, then), ready=starving, may_starve=True)
    assert found[1] == pytest.approx(1.3)
    assert looks((0.0, first), (1.0, then), ready=starving)[1] == pytest.approx(0.3)


@pytest.mark.parametrize(("running", "wait"), [("3", True), ("2", False), ("x", False)])
def test_threads_wait_where_more_are_ready_than_there_are_cpus(running, wait, monkeypatch) -> None:
    monkeypatch.setattr(cpu_demand, "read_text", lambda _: f"0.5 0.7 0.9 {running}/420 12345\n")
    assert cpu_demand.threads_wait(2.0) is wait


@pytest.fixture(autouse=True)
def no_waiting(replace_sleep: ReplaceSleep) -> None:
    replace_sleep(cpu_demand, lambda _: None)


def process(root: Path, pid: int, *states: str, name: str = "job") -> None:
    for number, state in enumerate(states):
        thread = root / "proc" / str(pid + number)
        thread.mkdir(parents=True)
        (thread / "stat").write_text(f"{pid + number} ({name}) {state} 1 1 0\n")


def group(root: Path, *tids: int) -> Cgroup:
    directory = root / "cgroup"
    directory.mkdir()
    (directory / "tasks").write_text("".join(f"{tid}\n" for tid in tids))
    return Cgroup({"cpu": directory}, None)


def test_running_threads_of_all_processes_are_busy(tmp_path) -> None:
    process(tmp_path, 10, "R", "S", "R")
    process(tmp_path, 20, "R", "D")
    assert cpu_demand.count_busy(group(tmp_path, 10, 11, 12, 20, 21), tmp_path) == 3


def test_a_name_may_hold_anything(tmp_path) -> None:
    process(tmp_path, 10, "S", name="a) R (b")
    assert cpu_demand.count_busy(group(tmp_path, 10), tmp_path) == 0


def test_the_most_of_several_counts_is_returned(tmp_path, replace_sleep) -> None:
    process(tmp_path, 10, "S")
    stat = tmp_path / "proc/10/stat"
    texts = iter(["10 (job) R 1\n", "10 (job) S 1\n", "10 (job) S 1\n", "10 (job) S 1\n"])
    replace_sleep(cpu_demand, lambda _: stat.write_text(next(texts)))
    assert cpu_demand.count_busy(group(tmp_path, 10), tmp_path) == 1


def test_a_process_that_ends_meanwhile_is_not_busy(tmp_path) -> None:
    assert cpu_demand.count_busy(group(tmp_path, 10), tmp_path) == 0


def test_without_processes_or_a_cgroup_nothing_is_known(tmp_path) -> None:
    assert cpu_demand.count_busy(group(tmp_path), tmp_path) is None
    assert cpu_demand.count_busy(Cgroup({}, None), tmp_path) is None
