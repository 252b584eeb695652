"""Leases on two engines: when one dies or hangs, the containers of the other are free in time, and
its own when it is back."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from helpers.containers import Containers, Job, eventually, socket_path
from helpers.daemon import Daemon
from helpers.pipes import give
from helpers.tools import Tools, records
from real_engine.conftest import own_engine
from real_engine.test_leases import live

from dltools.actions.plan_lines import dump_close

pytestmark = pytest.mark.slow

HERE = f"unix://{socket_path()}"
IN_TIME_S = 45
"""The engine of a request that hangs is given up after thirty seconds."""


@pytest.fixture(scope="module")
def second(image: str) -> Iterator[Daemon]:
    del image
    yield from own_engine("second-host")


@pytest.fixture
def jobs(run: Containers, second: Daemon) -> Iterator[list[Job]]:
    there = second.containers()
    try:
        yield [run(nano_cpus=1_500_000_000), there(nano_cpus=1_500_000_000)]
    finally:
        second.signal(signal.SIGCONT)
        there.remove()


def begin(tool: Tools, jobs: list[Job], second: Daemon, lease: str) -> subprocess.Popen[bytes]:
    process = tool.begin("dl-apply", "--host", HERE, "--host", second.url, "--lease", lease)
    plans = [live(job, {"cpus": 0.4}).splitlines() for job in jobs]
    actions = [plan[1] for plan in plans]
    head = plans[0][0].replace(b'"actions":1', b'"actions":2')
    assert process.stdout is not None
    give(process, b"\n".join([head, *actions, plans[0][-1], b""]))
    for _ in jobs:
        (result,) = records(process.stdout.readline())
        assert result["status"] == "applied", result
    return process


def is_free(job: Job) -> bool:
    return job.kernel_cpus == pytest.approx(1.5)


def quota_of(job: Job) -> Callable[[], str]:
    """Return what reads the kernel's quota, also while the engine does not answer."""
    folder = job.directory("cpu")
    names = ("cpu.cfs_quota_us", "cpu.max")
    (file,) = (folder / name for name in names if (folder / name).exists())
    return lambda: file.read_text()


def both_are_free(jobs: list[Job]) -> bool:
    return all(map(is_free, jobs))


def test_both_are_free_when_dl_apply_is_killed(tool, jobs, second) -> None:
    process = begin(tool, jobs, second, "600")
    process.kill()
    eventually(lambda: both_are_free(jobs))


def test_a_lease_ends_on_both(tool, jobs, second) -> None:
    process = begin(tool, jobs, second, "2")
    eventually(lambda: both_are_free(jobs))
    _, stderr = process.communicate(dump_close().encode(), timeout=60)
    assert (process.returncode, b"no plan for 2 s" in stderr) == (0, True)


@pytest.mark.parametrize("death", ["stops", "hangs"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "silent"])
def test_an_engine_that_is_away_holds_no_other(tool, jobs, second, death, is_killed) -> None:
    here, there = map(quota_of, jobs)
    before = there()
    process = begin(tool, jobs, second, "600" if is_killed else "2")
    limited = there()
    assert limited != before
    if death == "stops":
        second.stop()
    else:
        second.signal(signal.SIGSTOP)
    begun = time.monotonic()
    if is_killed:
        process.kill()
    eventually(lambda: here() == before)
    assert time.monotonic() - begun < IN_TIME_S
    assert there() == limited
    if death == "stops":
        second.start()
    else:
        second.signal(signal.SIGCONT)
    eventually(lambda: there() == before)
    process.kill()
    process.wait()
