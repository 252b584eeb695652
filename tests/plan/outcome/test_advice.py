"""What owners are told: only where threads spin and it costs something."""

from typing import Any

import pytest
from helpers.histories import ONE_POINT, having, history, host_history
from helpers.observed_rows import container, having_read, node, planner, planner_of, point

from dltools.actions.settings import Settings
from dltools.observations.host_samples import DeviceUse
from dltools.observations.table import Row
from dltools.plan.outcome import decisions
from dltools.plan.outcome.advice import advice
from dltools.plan.realisation.options import Mode
from dltools.plan.realisation.shared_host import Realisation
from dltools.plan.signals.container_history import ContainerHistory
from dltools.plan.signals.gpu_use import GpuUse
from dltools.plan.signals.in_force import Owner
from dltools.plan.signals.resource_use import CpuDemand, Throttled

PASSIVE = "start it with -e OMP_WAIT_POLICY=passive next time"
FEWER = f"{PASSIVE}, or with fewer threads: -e OMP_NUM_THREADS="


def job(
    name: str, threads: int | None = 2, runtime: str | None = "libgomp", **more: Any
) -> ContainerHistory:
    made = history(ONE_POINT, name=name)
    return having(made, threads=threads, openmp_runtime=runtime, **more)


def passive(name: str, threads: int = 2, **more: Any) -> ContainerHistory:
    return job(name, threads, **{"openmp_settings": "OMP_WAIT_POLICY=passive"} | more)


def told(
    *jobs: ContainerHistory, cpus: float = 2.0, planned: dict[str, Settings] | None = None
) -> list[str]:
    host = host_history(*jobs, cpus=cpus)
    found = Realisation(Mode.QUOTA, "as asked", settings=planned or {})
    return advice([host], decisions.decisions([host], {"host": found}))


def test_jobs_that_spin_and_compete_are_told_what_stops_it() -> None:
    *lines, worth = told(job("gru"), job("vae", threads=4))
    assert lines == [
        f"advice: gru: up to 2 threads of libgomp spin while they wait: {FEWER}1",
        f"advice: vae: up to 4 threads of libgomp spin while they wait: {FEWER}1",
    ]
    assert worth.startswith("6 threads of 2 jobs on 2 CPUs; measured on 2 CPUs")


def test_one_that_has_not_reported_is_told_too() -> None:
    assert len(told(job("gru"), job("silent", metrics={}))) == 3


def test_the_threads_that_fit_are_named() -> None:
    line, *_ = told(job("gru", 16), job("vae", 16), cpus=16.0)
    assert line.endswith(f"{FEWER}8")


def test_no_number_of_threads_is_named_that_it_has_already() -> None:
    line, *_ = told(job("gru", openmp_settings="OMP_NUM_THREADS=2"), job("vae", 16), cpus=4.0)
    assert line.endswith(PASSIVE)


BYSTANDER = job("exporter", 30, runtime=None, metrics={})


@pytest.mark.parametrize(
    ("jobs", "cpus"),
    [
        pytest.param([], 2.0, id="none"),
        pytest.param([job("alone", 8)], 2.0, id="alone"),
        pytest.param([job("alone", 2), BYSTANDER], 2.0, id="alone beside what is no job"),
        pytest.param([job("gru", 1), job("vae", 1), job("cnn", 1)], 2.0, id="one thread each"),
        pytest.param([job("gru"), job("vae")], 4.0, id="a CPU for each thread"),
        pytest.param([job("gru"), job("vae")], 0.0, id="a host of unknown size"),
        pytest.param([job(name, runtime=None) for name in ("gru", "vae")], 2.0, id="no OpenMP"),
        pytest.param([job("gru", None), job("vae", None)], 2.0, id="unknown"),
        pytest.param([passive("gru"), passive("vae")], 2.0, id="passive"),
    ],
)
def test_nothing_is_said_where_nothing_is_won(jobs, cpus) -> None:
    assert told(*jobs, cpus=cpus) == []


def test_a_quota_in_force_that_is_below_the_threads_is_warned_of() -> None:
    assert told(job("gru", cpus=1.0)) == [
        "warning: gru: up to 2 threads of libgomp spin while they wait, which uses up its quota of "
        f"1 CPUs: {FEWER}1"
    ]


def test_a_planned_quota_is_warned_of_and_one_that_goes_is_not() -> None:
    gru = job("gru", cpus=2.0)
    assert told(gru, planned={gru.id: {"cpus": 0.5}})[0].startswith("warning: gru: ")
    gru = job("gru", cpus=1.0)
    assert told(gru, planned={gru.id: {"cpus": None}}) == []


@pytest.mark.parametrize("settings", ["OMP_NUM_THREADS=1", "OMP_WAIT_POLICY=passive"])
def test_a_quota_of_a_job_that_does_not_spin_is_fine(settings) -> None:
    assert told(job("gru", openmp_settings=settings, cpus=1.0)) == []


def wanting(threads: float, pools: str | None = None, **more: Any) -> ContainerHistory:
    """A job whose threads were seen to want so many CPUs."""
    more = {"runtime": None, "metrics": {}} | more
    made = passive("x", 40, **{"cpu": CpuDemand(demands=(threads,), uses=(1.0,))} | more)
    made.runtime = made.runtime._replace(thread_pools=pools)
    made.judge()
    return made


@pytest.mark.parametrize(
    ("pools", "runtime", "start"),
    [
        ("llama.cpp", "libgomp", "start it with --threads 2 next time"),
        ("libopenblas", None, "start it with -e OPENBLAS_NUM_THREADS=2 next time"),
        ("libmkl", "libiomp5", "start it with -e OMP_NUM_THREADS=2 -e MKL_NUM_THREADS=2 next time"),
        ("rayon", None, "start it with -e RAYON_NUM_THREADS=2 next time"),
        ("polars", None, "start it with -e POLARS_MAX_THREADS=2 next time"),
        ("inductor", None, "start it with -e TORCHINDUCTOR_COMPILE_THREADS=2 next time"),
        ("libtbb", None, "start it with --cpuset-cpus of 2 CPUs next time"),
        (None, "libgomp", "start it with -e OMP_NUM_THREADS=2 next time"),
    ],
)
def test_what_sets_the_number_of_threads_is_named(pools, runtime, start) -> None:
    many = wanting(8.1, pools, runtime=runtime)
    assert told(many) == [f"warning: x: 8 threads want a CPU at once, and the host has 2: {start}"]


@pytest.mark.parametrize(
    ("owner", "limit", "fewer"),
    [
        (Owner(cpus=4.0), "its quota is 4, which stopped it 38% of the time", 4),
        (Owner(cpus=0.5), "its quota is 0.5, which stopped it 38% of the time", 1),
        (Owner(cpuset="0-2,5"), "it has 4", 4),
    ],
)
def test_the_limits_of_its_owner_count(owner, limit, fewer) -> None:
    many = wanting(7.9, "llama.cpp", owner=owner, throttled=Throttled(1, 1.0, 0.38))
    assert told(many, cpus=16.0) == [
        f"warning: x: 8 threads want a CPU at once, and {limit}: "
        f"start it with --threads {fewer} next time"
    ]


def test_of_an_unknown_program_the_number_is_named() -> None:
    line, *_ = told(wanting(4.0, metrics=ONE_POINT))
    assert line.endswith("and the host has 2: set the number of its threads to 2")


def test_a_quota_that_stops_a_job_is_enough_where_its_threads_come_and_go() -> None:
    stopped = wanting(1.0, "libopenblas", cpu=CpuDemand(), owner=Owner(cpus=2.0))
    assert told(stopped, cpus=16.0) == []
    stopped.use.throttled = Throttled(1, 1.0, 0.5)
    assert told(stopped, cpus=16.0) == [
        "warning: x: its quota is 2 CPUs, which stopped it 50% of the time: "
        "start it with -e OPENBLAS_NUM_THREADS=2 next time"
    ]


@pytest.mark.parametrize(
    "fine",
    [
        wanting(2.2, "libopenblas"),
        wanting(0.9, "libopenblas", owner=Owner(cpus=0.5), throttled=Throttled(1, 1.0, 0.5)),
        wanting(3.9, "libopenblas", owner=Owner(cpus=4.0)),
        wanting(30.0),  # a database
    ],
)
def test_threads_that_fit_or_sleep_are_fine(fine) -> None:
    cpus = 16.0 if fine.owner.cpus else 2.0
    assert told(fine, cpus=cpus) == []


def test_a_quota_that_a_plan_gives_is_no_matter_for_the_owner() -> None:
    many = wanting(2.0, "libopenblas")
    assert told(many, planned={many.id: {"cpus": 0.5}}) == []


def observed(**more: Any) -> list[Row]:
    return [
        row
        for second in (0.0, 10.0)
        for row in (
            node(second),
            *(container(second, name, second, thread_count=2, **more) for name in ("gru", "vae")),
            *(point(second, name, 1.0 - second / 20) for name in ("gru", "vae")),
        )
    ]


def test_the_advice_follows_from_the_recorded_columns_and_changes_no_plan() -> None:
    spinning = planner_of(observed(openmp_runtime="libgomp"), mode=Mode.PRIORITY)
    calm = planner_of(observed(), mode=Mode.PRIORITY)
    lines = spinning.explain().lines
    assert [line.partition(":")[0] for line in lines[-3:-1]] == ["advice", "advice"]
    assert lines[:-3] == calm.explain().lines
    assert spinning.plan({}, state=False) == calm.plan({}, state=False)


def test_the_advice_is_the_same_after_the_state_was_handed_on() -> None:
    rows = observed(openmp_runtime="libgomp", openmp_openmp_settings="OMP_NUM_THREADS=2")
    whole, half = planner_of(rows), planner_of(rows[:5])
    rest = having_read(planner("flowcon", Mode.QUOTA, half.plan({}).state), rows[5:])
    assert rest.explain().lines == whole.explain().lines
    assert any(line.startswith("advice: ") for line in whole.explain().lines)


def on_gpus(name: str, threads: int, *numbers: int, **more: Any) -> ContainerHistory:
    """A training with a rank for each of these GPUs."""
    uses = {f"GPU-{number}": DeviceUse(0.9) for number in numbers}
    return passive(name, threads, gpu_use=GpuUse(gpus=uses), **more)


def test_ranks_that_have_a_thread_on_each_cpu_are_named() -> None:
    """Eight ranks, each with 64 threads, on 64 CPUs."""
    assert told(on_gpus("ddp", 530, *range(8)), cpus=64.0) == [
        "warning: ddp: 530 threads for 8 of 8 GPUs in use, on all 64 CPUs: "
        "start it with -e OMP_NUM_THREADS=8 next time"
    ]
    both = on_gpus("a", 70, 0), on_gpus("b", 12, 1)
    assert [line.split(":")[1] for line in told(*both, cpus=64.0)] == [" a"]


@pytest.mark.parametrize(
    "jobs",
    [
        [on_gpus("alone", 70, 0)],
        [on_gpus("ddp", 530, *range(8), openmp_settings="OMP_NUM_THREADS=8")],
        [on_gpus("ddp", 530, *range(8), runtime=None)],
        [on_gpus("ddp", 100, *range(8))],
        [passive("cpus", 530)],
    ],
    ids=["one rank", "told how many", "no OpenMP", "fewer threads", "no GPU"],
)
def test_ranks_without_a_thread_on_each_cpu_are_not(jobs) -> None:
    assert told(*jobs, cpus=64.0) == []


def test_processes_that_compile_are_named_where_they_outnumber_the_cpus() -> None:
    compiling = job("x", 40, thread_pools="inductor=256+libopenblas", runtime=None)
    assert told(compiling, cpus=64.0) == [
        "warning: x: 256 processes compile at once on 64 CPUs: "
        "start it with -e TORCHINDUCTOR_COMPILE_THREADS=64 next time"
    ]
    assert told(compiling, cpus=256.0) == []
