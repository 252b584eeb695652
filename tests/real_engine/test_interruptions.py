"""A dl-apply whose input stays open: locked, killed, terminated, interrupted."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.containers import Job, eventually, plan_for
from helpers.pipes import feed, give
from helpers.tools import Tools, complaint, environment, records

SIGNALS = {signal.SIGTERM: 143, signal.SIGINT: 130}


def begin(tool: Tools, job: Job, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a dl-apply whose input stays open, and wait until it has applied a first plan."""
    process = tool.begin("dl-apply", *arguments)
    assert feed(process, plan_for(job, {"cpus": 0.4}))["status"] == "applied"
    return process


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    """Wait for the exit code and the rest of the output, with the input still open."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.wait(timeout=120), process.stdout.read(), process.stderr.read()


def test_a_second_dl_apply_has_to_try_again(tool, job) -> None:
    begin(tool, job)
    for arguments in ([], ["--undo"]):
        done = tool("dl-apply", *arguments, input=plan_for(job, {"cpus": 0.2}))
        assert done.returncode == 75
        assert "another dl-apply" in complaint(done.stderr)
    assert job.kernel_cpus == pytest.approx(0.4)


def test_a_dry_run_needs_no_lock(tool, job) -> None:
    begin(tool, job)
    done = tool("dl-apply", "--dry-run", input=plan_for(job, {"cpus": 0.2}))
    assert (done.returncode, records(done.stdout)[0]["status"]) == (0, "planned")


@pytest.mark.parametrize(("number", "code"), SIGNALS.items(), ids=lambda value: str(int(value)))
def test_a_signal_ends_a_stream_in_silence(tool, job, number, code) -> None:
    process = begin(tool, job)
    process.send_signal(number)
    assert ended(process) == (code, b"", b"")
    assert job.kernel_cpus == pytest.approx(0.4)


@pytest.mark.parametrize(("number", "code"), SIGNALS.items(), ids=lambda value: str(int(value)))
def test_with_restore_a_signal_restores_the_limits(tool, job, number, code) -> None:
    before = job.kernel()
    process = begin(tool, job, "--restore")
    process.send_signal(number)
    returned, stdout, stderr = ended(process)
    assert (returned, stderr) == (code, b"")
    assert [result["status"] for result in records(stdout)] == ["applied"]
    assert job.kernel() == before


SIGNAL_AT_THE_END = """
import ctypes, os, sys
sys.argv[0] = "dl-apply"
kill, pid, read = ctypes.CDLL(None).kill, os.getpid(), os.read
def reading(file, size):
    data = read(file, size)
    return data if data or file else data[: kill(pid, {number})]
os.read = reading
from dltools.cli.apply import main; main()
"""
"""A dl-apply that gets a signal just as its input ends."""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda value: str(int(value)))
def test_a_signal_at_the_end_of_the_input_restores_too(
    state: Path,  # noqa: ARG001
    job: Job,
    number: signal.Signals,
) -> None:
    """Ctrl-C reaches every tool of a pipe: the input may end as the signal comes."""
    before = job.kernel()
    code = SIGNAL_AT_THE_END.format(number=int(number))
    done = subprocess.run(
        [sys.executable, "-c", code, "--restore"],
        input=plan_for(job, {"cpus": 0.4}),
        capture_output=True,
        env=environment(),
        timeout=120,
    )
    assert done.stderr == b""
    assert [result["after"]["cpus"] for result in records(done.stdout)] == [0.4, 1.5]
    assert job.kernel() == before


def test_with_restore_a_broken_plan_restores_the_limits(tool, job) -> None:
    before = job.kernel()
    done = tool("dl-apply", "--restore", input=plan_for(job, {"cpus": 0.4}) + b"junk\n")
    assert done.returncode == 65
    assert job.kernel() == before


def test_with_restore_a_closed_output_restores_the_limits(tool, job) -> None:
    before = job.kernel()
    process = begin(tool, job, "--restore")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    give(process, plan_for(job, {"cpus": 0.2}))
    assert process.wait(timeout=120) == 141
    assert process.stderr.read() == b""
    assert job.kernel() == before


def test_restore_leaves_the_changes_of_another_run(tool, job, run) -> None:
    before = job.kernel()
    other = run(name="other")
    assert tool("dl-apply", input=plan_for(other, {"cpus": 0.3})).returncode == 0
    done = tool("dl-apply", "--restore", input=plan_for(job, {"cpus": 0.4}))
    assert done.returncode == 0
    assert [result["after"]["cpus"] for result in records(done.stdout)] == [0.4, 1.5]
    assert job.kernel() == before
    assert other.kernel_cpus == pytest.approx(0.3)
    assert tool("dl-apply", "--undo").returncode == 0
    assert other.kernel_cpus is None


@pytest.mark.parametrize(("number", "code"), SIGNALS.items(), ids=lambda value: str(int(value)))
def test_a_signal_ends_a_probe_in_silence(tool, run, tmp_path, number, code) -> None:
    run()
    target = tmp_path / "stream.arrow"
    process = tool.begin("dl-probe", *run.only, "-i", "0.2", "-o", target)
    eventually(lambda: target.exists() and target.stat().st_size, lambda size: size > 15_000)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (code, b"")
    done = tool("dl-plan", "--policy", "noop", target)
    assert (done.returncode, done.stderr) == (0, b"")  # the stream has its end
