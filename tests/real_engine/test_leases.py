"""A dead man's switch: when a stream stops, what it has set is undone, whatever has died."""

import itertools
import json
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from helpers.containers import Containers, Job, api, eventually, plan_for
from helpers.examples import repeated
from helpers.pipes import STAGES, Pipe, feed, give, watchdogs
from helpers.tools import complaint, records
from real_engine.test_pipe import RATES, TRAINING

from dltools.actions.plan_lines import dump_close
from dltools.actions.settings import Settings

SAMPLES = Path(__file__).parents[2] / "samples"


def live(job: Job, wanted: Settings, covers: Sequence[str] | None = None) -> bytes:
    given = b'"kind":"plan","live":true'
    if covers is not None:
        given += b',"covers":' + json.dumps(covers).encode()
    return plan_for(job, wanted).replace(b'"kind":"plan"', given, 1)


@pytest.fixture(autouse=True)
def no_watchdog_stays(state: Path) -> Iterator[None]:
    yield
    eventually(lambda: watchdogs(state) == [])


def test_a_stream_that_is_closed_leaves_its_settings_for_its_lease(tool, job, state) -> None:
    plans = live(job, {"cpus": 0.4}) + dump_close().encode()
    done = tool("dl-apply", input=plans)
    assert (done.returncode, done.stderr) == (0, b"")
    assert job.kernel_cpus == pytest.approx(0.4)
    assert len(watchdogs(state)) == 1
    assert tool("dl-apply", input=plan_for(job, {"weight": 300})).stderr == b""
    assert job.kernel_cpus == pytest.approx(0.4)  # the next run takes nothing back
    eventually(lambda: watchdogs(state) == [], seconds=60)  # and what it has set stays for good


@pytest.mark.parametrize("rest", [b"", b'{"kind":"plan"'], ids=["whole", "cut off"])
def test_a_stream_that_breaks_off_is_undone(tool, job, rest) -> None:
    before = job.kernel()
    done = tool("dl-apply", input=live(job, {"cpus": 0.4}) + rest)
    assert done.returncode == 65
    assert rest or "undoing what this run has set" in complaint(done.stderr)
    assert [result["after"]["cpus"] for result in records(done.stdout)] == [0.4, 1.5]
    assert job.kernel() == before


def test_a_stream_without_a_lease_that_breaks_off_leaves_its_settings(tool, job, state) -> None:
    process = tool.begin("dl-apply", "--lease", "0")
    feed(process, live(job, {"cpus": 0.4}))
    assert watchdogs(state) == []
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, b"")
    assert job.kernel_cpus == pytest.approx(0.4)


def test_a_stream_that_falls_silent_is_undone_until_it_goes_on(tool, job) -> None:
    before = job.kernel()
    process = tool.begin("dl-apply", "--lease", "1.5")
    assert feed(process, live(job, {"cpus": 0.4}))["status"] == "applied"
    begun = time.monotonic()
    eventually(lambda: job.kernel() == before)
    assert time.monotonic() - begun > 1
    assert process.stdout is not None
    (undone,) = records(process.stdout.readline())
    assert undone["after"]["cpus"] == 1.5
    assert feed(process, live(job, {"cpus": 0.7}))["status"] == "applied"
    assert job.kernel_cpus == pytest.approx(0.7)
    _, stderr = process.communicate(dump_close().encode(), timeout=120)
    assert "no plan for 1.5 s" in complaint(stderr)


def test_a_job_that_a_stream_no_longer_covers_has_its_own_settings_again(run, tool) -> None:
    """Its owner has renamed it, and dl-probe's --name selects it no more."""
    job, other = run(name="job"), run(name="other")
    before = job.kernel()
    process = tool.begin("dl-apply")
    for one in (job, other):
        assert feed(process, live(one, {"cpus": 0.4}, covers=(job.id, other.id)))["id"] == 1
    result = feed(process, live(other, {"cpus": 0.4}, covers=(job.id, other.id)))
    assert (result["status"], job.kernel_cpus) == ("unchanged", pytest.approx(0.4))
    give(process, live(other, {"cpus": 0.4}, covers=(other.id,)))
    eventually(lambda: job.kernel() == before)
    assert other.kernel_cpus == pytest.approx(0.4)
    process.communicate(dump_close().encode(), timeout=120)
    (end, *_) = [
        one["how"]
        for one in records(tool("dl-apply", "--history", "--format", "jsonl", job.name).stdout)
    ]
    assert end == "lease over"


def test_a_job_renamed_so_that_name_excludes_it_has_its_own_settings_again(run, tool) -> None:
    job = run(name="job")
    before, name = job.kernel(), job.name
    process = tool.begin("dl-apply", "--name", f"^{name}$")
    assert feed(process, live(job, {"cpus": 0.4}))["status"] == "applied"
    api().rename(job.id, f"{name}-mine")
    assert feed(process, live(job, {"cpus": 0.5}))["status"] == "skipped"
    eventually(lambda: job.kernel() == before)
    process.communicate(dump_close().encode(), timeout=120)


def test_the_watchdog_is_replaced_when_it_dies(tool, job, state) -> None:
    before = job.kernel()
    process = tool.begin("dl-apply")
    feed(process, live(job, {"cpus": 0.4}))
    (first,) = eventually(lambda: watchdogs(state))
    os.kill(first, signal.SIGKILL)
    eventually(lambda: [one for one in watchdogs(state) if one != first])
    process.kill()
    eventually(lambda: job.kernel() == before)


def test_a_stopped_dl_apply_is_taken_for_dead_when_its_lease_is_over(tool, job) -> None:
    before = job.kernel()
    process = tool.begin("dl-apply", "--lease", "2")
    feed(process, live(job, {"cpus": 0.4}))
    process.send_signal(signal.SIGSTOP)
    (held,) = tool.status()
    assert (held["run"]["alive"], held["run"]["stopped"]) == (True, True)
    assert job.kernel_cpus == pytest.approx(0.4)
    eventually(lambda: job.kernel() == before)
    process.send_signal(signal.SIGCONT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert "the run was stopped for" in complaint(stderr)


# The whole pipe


def is_changed(jobs: list[Job]) -> bool:
    return any(job.inspect().state == "paused" or job.kernel_cpus is not None for job in jobs)


MODES = {
    "limits": "-p flowcon --realize quota --set itval=2 --set alpha=0.01",
    "pauses": "-p fair --realize rotate",
}


KILLED = repeated(
    [
        ("limits", STAGES[:1]),
        ("pauses", STAGES[1:2]),
        ("limits", STAGES[2:]),
        ("pauses", STAGES[2:]),
        ("limits", STAGES),
        ("pauses", STAGES),
    ],
    [
        (mode, names)
        for mode in MODES
        for count in (1, 2, 3)
        for names in itertools.combinations(STAGES, count)
    ],
)
"""What the pipe has set, and which of its stages die: each, that which holds the lock, and all."""


def trainings(run: Containers) -> list[Job]:
    return [run(TRAINING.replace("RATE", str(rate)), name=name) for name, rate in RATES.items()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "names"), [pytest.param(*one, id=f"{one[0]}-{'+'.join(one[1])}") for one in KILLED]
)
def test_whatever_is_killed_nothing_stays_set(
    tool, run, state, mode, names, record_property
) -> None:
    jobs = trainings(run)
    before = [job.kernel() for job in jobs]
    pipe = Pipe(tool, run.only, *MODES[mode].split())
    eventually(lambda: is_changed(jobs))
    eventually(lambda: watchdogs(state))
    pipe.kill(names)
    killed = time.monotonic()
    eventually(lambda: not is_changed(jobs), seconds=60)
    record_property("undone_s", round(time.monotonic() - killed, 2))
    eventually(lambda: watchdogs(state) == [])
    assert [job.kernel() for job in jobs] == before
    assert not is_changed(jobs)
    assert list((state / "journal").glob("*")) == []
    assert list((state / "rotation").glob("*")) == []


@pytest.mark.slow
def test_the_unit_s_last_command_undoes_what_nothing_else_could(tool, run, state, tmp_path) -> None:
    jobs = trainings(run)
    before = [job.kernel() for job in jobs]
    pipe = Pipe(tool, run.only, *MODES["pauses"].split())
    eventually(lambda: is_changed(jobs))
    (watchdog,) = eventually(lambda: watchdogs(state))
    os.kill(watchdog, signal.SIGSTOP)
    pipe.kill(STAGES)
    os.kill(watchdog, signal.SIGKILL)
    unit = (SAMPLES / "systemd" / "dltools-stream.service").read_text()
    (last,) = re.findall("^ExecStopPost=(.*)$", unit, re.M)
    done = tool.shell(last, tmp_path / "bin")
    assert done.returncode == 0
    assert not is_changed(jobs)
    assert [job.kernel() for job in jobs] == before
