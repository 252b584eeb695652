"""What is told of containers, worked by hand: each event, what comes near to it, and once each."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from helpers.observed_rows import at, container, gpu, job_id, node, point
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.table import Row
from dltools.plan.signals import evaluation_metric
from dltools.plan.signals.container_history import ContainerHistory
from dltools.probe.notices import Event, Notice, Notices

GIB = 1 << 30
TARGETS = '{"dltools.metric": "acc", "dltools.target": "0.9", "dltools.target.final": "0.95"}'


def told(samples: Iterable[Sequence[Row]]) -> list[Notice]:
    notices = Notices()
    return [notice for rows in samples for notice in notices.take(rows)]


def events(samples: Iterable[Sequence[Row]]) -> list[str]:
    return [notice.event.value for notice in told(samples)]


def job(seconds: float, cpu_seconds: float, **more: Any) -> list[Row]:
    """A sample of a host with one training; the host's CPUs are idle but for it."""
    return [
        node(seconds) | {"cpu_seconds": cpu_seconds},
        container(seconds, "job", cpu_seconds, **({"role": "training"} | more)),
    ]


def event(seconds: float, name: str, **more: Any) -> Row:
    return {
        "time": at(seconds),
        "host": "node",
        "kind": "event",
        "container_id": job_id("job"),
        "container_name": "job",
        "event": name,
        "exit_code": None,
    } | more


def gone(seconds: float, *rows: Row) -> list[Row]:
    return [*rows, node(seconds)]


def reporting(until: int, step: int = 10) -> list[list[Row]]:
    """Samples of a training that reports with each, and uses a core."""
    return [[point(t, "job", 1 / (1 + t)), *job(t, t)] for t in range(0, until + 1, step)]


def after(begin: int, end: int, cores: float = 0.0, step: int = 10, **more: Any) -> list[list[Row]]:
    """Samples of a training that reports nothing more, and uses so many cores."""
    return [job(t, begin + cores * (t - begin), **more) for t in range(begin, end + 1, step)]


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        (0, "finished", "job: finished after 100 s"),
        (1, "failed", "job: failed after 100 s: exit code 1"),
        (143, "failed", "job: failed after 100 s: exit code 143 (SIGTERM, as docker stop sends)"),
    ],
)
def test_a_job_that_exits(code, expected, words) -> None:
    found = told([job(90, 1), gone(101, event(100, "exit", exit_code=code))])
    assert [(one.event, one.message, one.details) for one in found] == [
        (expected, words, {"exit_code": code})
    ]


def test_an_exit_of_what_is_no_job_or_has_no_code_is_not_told() -> None:
    assert events([job(0, 1, role="other"), gone(9, event(8, "exit", exit_code=1))]) == []
    assert events([job(0, 1), gone(9, event(8, "exit"))]) == []
    assert events([gone(9, event(8, "exit", exit_code=1))]) == []


def test_a_server_that_is_stopped_has_not_failed() -> None:
    found = told([job(90, 1, role="server"), gone(101, event(100, "exit", exit_code=143))])
    assert [(one.event, one.details) for one in found] == [("finished", {"exit_code": 143})]


def test_a_kill_for_memory_is_told_once_and_not_as_a_failure_too() -> None:
    killed = [event(8, "oom"), event(8, "oom"), event(8, "exit", exit_code=137)]
    assert events([job(0, 1), gone(9, *killed)]) == ["out_of_memory"]
    ended = [event(8, "oom"), event(8, "exit", exit_code=1)]
    assert events([job(0, 1), gone(9, *ended)]) == ["out_of_memory", "failed"]
    assert events([job(0, 1), gone(9, event(8, "exit", exit_code=137))]) == ["failed"]


def test_a_container_that_restarts_again_and_again_is_told_once() -> None:
    samples = [
        [event(t, "exit", exit_code=1), *job(t, 1, started_at=at(t))] for t in range(0, 100, 10)
    ]
    assert events(samples) == ["failed"]


def test_an_exit_is_told_whose_event_comes_a_sample_late() -> None:
    assert events([job(0, 1), gone(5), gone(10, event(4, "exit", exit_code=0))]) == ["finished"]


def test_divergence_is_three_reports_that_are_not_finite() -> None:
    nan = math.nan
    values = [[point(t, "job", v), *job(t, t)] for t, v in enumerate([2.0, 1.0, nan, nan])]
    assert events(values) == []
    found = told([*values, [point(4, "job", math.inf), *job(4, 4)], [point(5, "job", nan)]])
    assert [one.event for one in found] == [Event.DIVERGED]
    assert found[0].message == "job: diverged: loss is inf in its newest 3 reports"


def test_no_divergence_where_a_loss_recovers_or_another_one_goes_on() -> None:
    nan = math.nan
    recovers = [1.0, nan, nan, 1.0, nan, nan]
    assert events([[point(t, "job", v), *job(t, t)] for t, v in enumerate(recovers)]) == []
    assert events([[point(t, "job", nan), *job(t, t)] for t in range(2)]) == []
    assert events([[point(t, "job", nan), *job(t, t)] for t in range(3)]) == ["diverged"]
    both = [
        [point(t, "job", v, "val_loss"), point(t, "job", 1.0), *job(t, t)]
        for t, v in enumerate([1.0, nan, nan, nan, nan])
    ]
    assert events(both) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["loss", "val_loss", "val_acc", "reward", "grad_norm"]),
            st.sampled_from([1.0, 0.5, math.nan, math.inf]),
        ),
        max_size=40,
    )
)
def test_divergence_is_what_the_policies_take_for_it(points) -> None:
    history = ContainerHistory(job_id("job"), "job", 0)
    notices, found = Notices(), []
    for t, (metric, value) in enumerate(points):
        found += notices.take([point(t, "job", value, metric), *job(t, t)])
        history.add_points(metric, ([t], [value], [t]))
        metric_now = evaluation_metric.metric_of(history)
        if metric_now is not None and evaluation_metric.has_diverged(history, metric_now):
            break
    else:
        assert found == []
        return
    assert [one.event for one in found] == [Event.DIVERGED]


def test_each_target_is_told_once() -> None:
    values = [0.5, 0.91, 0.92, 0.96, 0.97]
    found = told(
        [point(t, "job", v, "acc"), *job(t, t, labels=TARGETS)] for t, v in enumerate(values)
    )
    assert [(one.event, one.details["tier"], one.details["value"]) for one in found] == [
        ("target_met", "first", 0.91),
        ("target_met", "final", 0.96),
    ]
    assert found[0].message == "job: acc is 0.91: its target 0.9 is met"
    assert found[1].message == "job: acc is 0.96: its final target 0.95 is met"


def test_a_stall_is_silence_for_ten_minutes_and_stillness_for_five() -> None:
    begun = reporting(100)
    assert events([*begun, *after(110, 690)]) == []
    found = told([*begun, *after(110, 710), *after(720, 2000)])
    assert [one.event for one in found] == [Event.STALLED]
    assert found[0].message == "job: stalled: no report for 10 min, and no activity"
    assert found[0].time == at(700)


def test_a_rhythm_of_long_epochs_makes_long_silences() -> None:
    hours = [[point(t, "job", 1.0), *job(t, t)] for t in (0, 3600, 7200)]
    still = [[node(t), *job(t, 7200)[1:]] for t in range(7260, 7200 + 3 * 3600, 60)]
    assert events([*hours, *still]) == []
    at_last = [[node(t), *job(t, 7200)[1:]] for t in range(7200 + 3 * 3600, 20000, 60)]
    # the host's CPU use is unknown, and so is the job's demand: it may wait for a CPU
    assert events([*hours, *still, *at_last]) == []
    known = [job(t, 7200) for t in range(7260, 20000, 60)]
    assert events([*hours, *known]) == ["stalled"]


@pytest.mark.parametrize(
    "more",
    [
        {"cores": 0.06},  # a validation computes
        {"rate": {"io_write_bytes": 20_000}},  # a checkpoint is written
        {"rate": {"network_transmit_bytes": 20_000}},  # or sent
        {"rate": {"network_receive_bytes": 20_000}},  # data come
        {"rate": {"io_pressure_seconds": 0.05}},  # it waits for a file server
        {"demand_cores": 0.9},  # it waits for a CPU
        {"rate": {"cpu_pressure_seconds": 0.9}},
        {"state": "paused"},
        {"turn_seconds": 30.0},
        {"role": "server"},
        {"role": "other"},
    ],
)
def test_no_stall_while_anything_moves_or_may_not(more) -> None:
    rates = more.pop("rate", {})
    cores = more.pop("cores", 0.0)
    samples = [
        job(t, 100 + cores * t, **more, **{name: rate * t for name, rate in rates.items()})
        for t in range(110, 7200, 10)
    ]
    assert Event.STALLED not in events([*reporting(100), *samples])


STILL = range(110, 7200, 10)


@pytest.mark.parametrize(
    "samples",
    [
        # It may wait for a CPU on a busy host.
        [*reporting(100), *([node(t) | {"cpu_seconds": 1.9 * t}, *job(t, 100)[1:]] for t in STILL)],
        # One busy sample begins the stillness anew.
        [*reporting(100), *(job(t, 100 + 20 * (t // 290)) for t in STILL)],
        # Before a training has a rhythm.
        [*reporting(10), *after(20, 7200)],
    ],
    ids=["a busy host", "pulses", "two reports"],
)
def test_no_stall_where_it_may_go_on(samples) -> None:
    assert events(samples) == []


def held(seconds: float, ratio: float | None = 0.0, **more: Any) -> list[Row]:
    used = more.pop("used", 4 * GIB)
    card = gpu(seconds, "job", 0, ratio, gpu_memory_used_bytes=used)
    return [*job(seconds, 5.0, **more), card]


def test_a_gpu_that_a_notebook_holds_and_leaves_idle() -> None:
    assert events(held(t, role="interactive") for t in range(0, 900, 10)) == []
    found = told(held(t, role="interactive") for t in range(0, 3600, 10))
    assert [one.event for one in found] == [Event.GPU_IDLE]
    assert found[0].message == "job: holds 4 GiB of GPU memory, idle for 15 min"
    assert found[0].details["gpu_uuid"] == ["GPU-0"]


@pytest.mark.parametrize(
    "more",
    [
        {"role": "server"}, {"ratio": None}, {"ratio": math.nan}, {"ratio": 0.02}, {"used": 0},
        {"state": "paused"},
    ],
)  # fmt: skip
def test_no_gpu_is_idle_that_a_server_holds_or_that_is_in_use(more) -> None:
    assert Event.GPU_IDLE not in events(held(t, **more) for t in range(0, 7200, 10))


def test_no_gpu_is_idle_while_its_job_computes_on_cpus() -> None:
    idle = {t: gpu(t, "job", 0, 0.0, gpu_memory_used_bytes=GIB) for t in range(0, 7200, 10)}
    assert events([*job(t, 0.1 * t), card] for t, card in idle.items()) == []


def test_what_is_forgotten_is_not_told_again() -> None:
    notices = Notices()
    for t in range(3):
        notices.take([point(t, "job", 1.0 - t, "acc"), *job(t, t)])
    for t in range(3, 20):
        notices.take(gone(t))
    assert not notices._watched


def test_a_host_that_does_not_answer_is_no_container_that_is_gone() -> None:
    silent: list[list[Row]] = [[] for _ in range(50)]
    ended = gone(700, event(650, "exit", exit_code=0))
    assert events([*reporting(100), *silent, ended]) == ["finished"]


def test_a_pause_that_is_no_turn_is_told_after_a_minute() -> None:
    begun = reporting(20)
    assert events([*begun, *after(30, 80, state="paused")]) == []
    found = told([*begun, *after(30, 200, state="paused")])
    assert [(one.event, one.time, one.details) for one in found] == [
        ("paused", at(90), {"paused_seconds": 60.0})
    ]
    assert found[0].message.startswith("job: paused for 60 s, and takes no turns")
    short = [*after(30, 80, state="paused"), job(90, 90), *after(100, 150, state="paused")]
    assert events([*begun, *short]) == []


def test_a_wait_for_a_turn_is_told_after_a_minute() -> None:
    turn = {"state": "paused", "turn_seconds": 5.0}
    found = told([*reporting(20), *after(30, 200, **turn)])
    assert [(one.event, one.time, one.details) for one in found] == [
        ("waiting", at(80), {"waiting_seconds": 60.0})
    ]
    assert found[0].message == ("job: has waited for 60 s, paused until its turn: others go first")
    assert events([*reporting(20), *after(30, 200, **turn, role="other")]) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["waiting"]),
        ({"cpu_weight": 1024.0}, []),  # nobody holds it back
        ({"cpu_weight": 100.0, "owner_cpu_weight": 100.0}, []),  # as its owner asked
        ({"demand_cores": 0.0}, []),  # it wants nothing
        ({"demand_cores": None}, []),  # nothing is known
    ],
)
def test_a_wait_at_a_low_weight_is_told(more, expected) -> None:
    low = {"cpu_weight": 10.0, "owner_cpu_weight": 1024.0, "demand_cores": 1.0} | more
    assert events([*reporting(20), *after(30, 200, **low)]) == expected


def test_a_job_at_a_low_weight_that_gets_what_it_wants_does_not_wait() -> None:
    low = {"cpu_weight": 10.0, "demand_cores": 1.0}
    assert events([*reporting(20), *after(30, 200, cores=0.5, **low)]) == []


def test_a_health_check_that_fails_is_told_once() -> None:
    failed = event(8, "unhealthy")
    found = told([job(0, 1), [failed, *job(10, 2)], [failed, *job(20, 3)]])
    assert [(one.event, one.message) for one in found] == [
        ("unhealthy", "job: unhealthy: its health check has failed")
    ]
    (one,) = told([job(0, 1), [failed, *job(10, 2, state="paused")]])
    assert one.message.endswith("has failed while it is paused")
