"""The clock is set an hour ahead or back while the pipe runs: the pipe goes on.

The tools see a clock that the test steps; the engine's own stays, as a step of the machine's clock
would disturb all else that runs here.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.containers import eventually
from helpers.pipes import feed
from helpers.stepped_clock import NoCompilerError, SteppedClock
from real_engine.test_leases import live
from real_engine.test_pipe import TRAINING as TRAINING_AT_A_RATE

pytestmark = pytest.mark.slow
TRAINING = TRAINING_AT_A_RATE.replace("RATE", "0.1")
HOUR = 3600


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    try:
        made = SteppedClock(tmp_path)
    except NoCompilerError as error:
        pytest.skip(str(error))
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    return made


def test_the_tools_see_the_stepped_clock(clock) -> None:
    code = "import time, datetime as d; print(time.time(), d.datetime.now(d.UTC).timestamp())"
    for step in (HOUR, -HOUR):
        clock.set(step)
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        assert [float(one) - time.time() for one in said.split()] == pytest.approx(
            [step, step], abs=60
        )


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["ahead", "back"])
def test_ticks_keep_their_period(tool, run, clock, step) -> None:
    run(TRAINING)
    process = tool.begin("dl-probe", *run.only, "-i", "0.5", "--format", "jsonl")
    assert process.stdout is not None
    hosts = (row for row in map(json.loads, process.stdout) if row["kind"] == "node")
    next(hosts)
    came = [time.monotonic() for _ in itertools.islice(hosts, 3)]
    clock.set(step)
    came += [time.monotonic() for _ in itertools.islice(hosts, 5)]
    assert max(after - before for before, after in itertools.pairwise(came)) < 5
    assert came[-1] - came[0] > 2.5


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["ahead", "back"])
def test_the_pipe_goes_on(tool, run, clock, tmp_path, step) -> None:
    """Set back, the clock says that the containers start in an hour: they may be without limits
    until it is right again."""
    jobs = [run(TRAINING, name=name) for name in "ab"]
    before = [job.kernel() for job in jobs]
    said = tmp_path / "said"
    only = " ".join(run.only)
    line = f"dl-probe {only} -i 1 | dl-plan -p fair --realize quota | dl-apply --restore"
    pipe = tool.begin_shell(f"{{ {line}; }} 2>{said}", tmp_path / "bin")

    def limits() -> list[float | None]:
        return [job.kernel_cpus for job in jobs]

    limited = eventually(limits, lambda found: None not in found)
    clock.set(step)
    time.sleep(2.5)
    assert pipe.poll() is None, said.read_text()
    assert all(now in (None, was) for now, was in zip(limits(), limited, strict=True))
    clock.set(0)
    jobs.append(run(TRAINING, name="c"))
    before.append(jobs[-1].kernel())
    eventually(limits, lambda found: None not in found and found[0] < limited[0])
    assert pipe.poll() is None, said.read_text()
    assert "no plan for" not in said.read_text()
    assert "the clock was set back: dl-plan forgets what it knew" in said.read_text()
    end(pipe)
    eventually(lambda: [job.kernel() for job in jobs] == before)


def end(pipe: subprocess.Popen[bytes]) -> None:
    os.killpg(pipe.pid, signal.SIGINT)
    pipe.wait(60)


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["ahead", "back"])
def test_a_lease_lasts_as_long_as_it_is_to(tool, job, clock, step) -> None:
    before = job.kernel()
    process = tool.begin("dl-apply", "--lease", "2.5")
    assert feed(process, live(job, {"cpus": 0.4}))["status"] == "applied"
    begun = time.monotonic()
    clock.set(step)
    eventually(lambda: job.kernel() == before)
    assert 1.5 < time.monotonic() - begun < 30
    process.kill()
