"""What --doctor finds in a sample."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from helpers.observed_rows import container, gpu, node, point

from dltools.cli.probe.doctor_on_sample import Finding, Health, of_sample
from dltools.engine.interface import Engine
from dltools.observations.roles import NO_RULES
from dltools.observations.schema import COLUMNS
from dltools.observations.table import Row

TORCH = {"openmp_runtime": "libgomp"}


def found(*rows: Row, expects_gpus: bool = False) -> dict[str, Finding]:
    """Return the findings by subject; of one subject the last."""
    return {one.subject: one for one in findings(*rows, expects_gpus=expects_gpus)}


def findings(
    *rows: Row, before: Sequence[Row] = (), expects_gpus: bool = False, is_local: bool = False
) -> list[Finding]:
    whole, earlier = (
        [dict.fromkeys(one.name for one in COLUMNS) | row for row in some]
        for some in (rows, before)
    )
    engine = SimpleNamespace(has_gpu=expects_gpus, is_local=is_local)
    return list(of_sample(cast(Engine, engine), whole, NO_RULES, earlier))


def training(name: str, **more: Any) -> list[Row]:
    row = container(0, name, 20.0, role="training", role_reason="reports loss", **more)
    return [row, point(0, name, 0.5)]


def test_a_training_that_is_read_is_well() -> None:
    one = found(node(0), *training("a", demand_cores=1.0))
    assert one["a"] == Finding(
        Health.OK, "a", "training: reports loss; read: counters, 1 points of loss"
    )
    assert one["plan"].text == "nothing to do: one job alone, a: nothing to share"
    assert {finding.health for finding in one.values()} == {Health.OK}


def test_ranks_with_threads_on_all_cpus_are_named() -> None:
    one = training("ddp", thread_count=30, cpu_limit_cores=4.0, **TORCH)
    rows = [node(0, cpus=4.0), *one, gpu(0, "ddp", 0, 0.9), gpu(0, "ddp", 1, 0.9)]
    said = [finding.text for finding in findings(*rows) if finding.subject == "threads"]
    assert any(text.startswith("ddp: 30 threads for 2 of 2 GPUs") for text in said)


def test_a_share_of_a_gpu_that_was_given_at_the_start_is_told() -> None:
    one = found(node(0), *training("a", gpu_share_at_start="MPS, 50 % of threads"))["a"]
    assert one.text.startswith("share of a GPU: MPS, 50 % of threads, set at its start")


def test_what_is_not_read_is_a_warning(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    gap = "this user may not read its processes"
    one = found(node(0), container(0, "a", 1.0, gap=gap))["a"]
    assert (one.health, one.next) == (Health.WARNING, "sudo dl-probe --doctor")
    assert one.text.endswith(f"; not read: {gap}")


def test_a_training_without_progress_is_a_warning() -> None:
    row = container(0, "a b", 20.0, role="training", role_reason="libtorch, silent")
    one = found(node(0), row)["a b"]
    assert one.health is Health.WARNING
    assert one.next == "dl-probe --list-metrics --name '^a b$'"


BUSY = {"thread_count": 9, "demand_cores": 4.0}


def test_more_threads_than_cpus_and_runtimes_that_spin() -> None:
    one = found(node(0), *training("a", **BUSY, **TORCH), *training("b", **BUSY, **TORCH))
    said = one["threads"]
    assert said.health is Health.WARNING
    assert said.text.startswith("b: 4 threads want a CPU at once, and the host has 2")
    spinning = BUSY | TORCH | {"cpu_limit_cores": 4.0}
    rows = [node(0, cpus=4.0), *training("a", **spinning), *training("b", **spinning)]
    every = [(one.subject, one.text, one.next) for one in findings(*rows)]
    spins = "a: up to 4 threads of libgomp spin while they wait: start it with"
    assert any(text.startswith(spins) for _, text, _ in every)


def test_sleeping_threads_and_shells_are_no_busy_threads() -> None:
    shells = {"thread_count": 6, "demand_cores": 1.4}
    one = found(node(0), *training("a", **shells), *training("b", thread_count=6))
    assert "threads" not in one


def test_what_was_busy_before_the_last_look_does_not_count() -> None:
    """Processes that compiled are asleep by now, and the quota has stopped it since."""
    now = {"openmp_runtime": "libgomp", "owner_cpu_limit_cores": 1.0, "owner_cpu_weight": 1024.0}
    before = [node(-1), container(-1, "a", 19.0, cpu_throttled_seconds=1.0, demand_cores=32.0)]
    rows = [node(0), *training("a", demand_cores=1.9, cpu_throttled_seconds=1.25, **now)]
    assert [one.text for one in findings(*rows, before=before) if one.subject == "threads"] == [
        "a: 2 threads want a CPU at once, and its quota is 1, which stopped it 25% of the time: "
        "start it with -e OMP_NUM_THREADS=1 next time"
    ]


def test_a_program_that_is_not_known_gets_no_variable() -> None:
    one = found(node(0), *training("awk", **BUSY), *training("sh", **BUSY))
    assert one["threads"].text.endswith("the host has 2: set the number of its threads to 2")
    every = findings(node(0), *training("awk", **BUSY), *training("sh", **BUSY))
    assert not any("OMP" in f"{one.text}{one.next}" for one in every)


def test_a_quota_below_busy_threads() -> None:
    limits = {"cpu_limit_cores": 1.5, "owner_cpu_limit_cores": 1.5, "owner_cpu_weight": 1024.0}
    one = found(node(0, cpus=8.0), *training("a", **BUSY, **limits))
    assert one["threads"].text == (
        "a: 4 threads want a CPU at once, and its quota is 1.5: set the number of its threads to 1"
    )


def test_a_virtual_machine_behind_a_socket() -> None:
    gap = "the engine's host is not this machine"
    (one, *_) = findings(node(0) | {"gap": gap}, is_local=True)
    assert (one.health, one.subject) == (Health.WARNING, "host")
    assert one.text.startswith("a virtual machine is behind this socket")
    (one, *_) = findings(node(0) | {"gap": gap})
    assert one.text == gap


def test_gpus_that_cannot_be_seen() -> None:
    row = node(0) | {"gap": "NVML: driver not loaded"}
    assert found(row, expects_gpus=True)["host"].health is Health.WARNING
    assert found(row)["host"] == Finding(Health.OK, "host", "2 CPUs for containers, no GPU")
