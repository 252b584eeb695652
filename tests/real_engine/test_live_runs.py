"""samples/live/run on a real engine, with jobs of two seconds."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.containers import IMAGE, api, eventually
from helpers.tools import environment

pytestmark = [pytest.mark.engine, pytest.mark.slow]

RUN = Path(__file__).parents[2] / "samples" / "live" / "run"
LABEL = "dltools-live"
QUICK = ("--crowded", "--endless", "3")
COUNT = "for i in 1 2 3 4 5 6 7 8; do usleep 300000; echo epoch $i loss 0.$((99-i)); done"
KINDS = f"""
[[kind]]
name = "count"
work = 2.4
epochs = 8
image = "{IMAGE}"
command = ["/bin/sh", "-c", "{COUNT}"]
first = 0.95

[[kind]]
name = "endless"
work = 1e6
image = "{IMAGE}"
command = ["/bin/sh", "-c", "while :; do sleep 1; done"]
"""


class Runner:
    """Starts the script; containers of other tests do not matter to it."""

    def __init__(self, folder: Path) -> None:
        self.output = folder / "out"
        self._file = folder / "list.toml"

    def begin(self, jobs: str, *options: str) -> subprocess.Popen[str]:
        self._file.write_text(KINDS + jobs)
        words = [sys.executable, str(RUN), *options, "--output", str(self.output), str(self._file)]
        return subprocess.Popen(
            words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )

    def __call__(self, jobs: str, *options: str) -> tuple[int, str, str]:
        process = self.begin(jobs, *options)
        out, error = process.communicate(timeout=300)
        return process.returncode, out, error


def ours() -> list[str]:
    found = api().containers(all=True, filters={"label": LABEL})
    return [one["Id"] for one in found]


def probes() -> list[int]:
    """The processes of dl-probe that watch a measurement."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{LABEL}=".encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def runner(engine: object, image: str, tmp_path: Path) -> Iterator[Runner]:  # noqa: ARG001
    yield Runner(tmp_path)
    for one in ours():
        api().remove_container(one, force=True)


COUNT = '[[job]]\nkind = "count"\n'
JOBS = """
[[job]]
kind = "count"
name = "first"
[[job]]
kind = "endless"
[[job]]
kind = "count"
name = "second"
arrival = 1
"""


@pytest.fixture(scope="module")
def measured(
    engine: object,  # noqa: ARG001
    image: str,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Runner, str]:
    """A list that has been measured under two arms, and what the script printed."""
    runner = Runner(tmp_path_factory.mktemp("measured"))
    code, out, error = runner(JOBS, *QUICK, "--arms", "noop,fair=-p fair --realize rotate")
    assert code == 0, error
    assert ours() == []
    return runner, out


def test_a_list_is_run_simulated_and_shown(measured) -> None:
    runner, out = measured
    text = (runner.output / "RESULTS.md").read_text()
    assert out.strip() == text.strip()
    assert "| noop |" in text
    assert "| fair |" in text
    kept = json.loads((runner.output / "runs/list/measured.json").read_text())
    assert [run["arm"] for run in kept["runs"]] == ["noop", "fair"]
    for run in kept["runs"]:
        times = {job["name"]: job for job in run["jobs"]}
        assert times["endless-2"]["completion"] is None
        assert 2.4 <= times["first"]["completion"] <= run["makespan"]
        assert [value for _, value in times["second"]["progress"]][-1] == 0.91
        assert 1.2 <= times["second"]["to_first"] < times["second"]["completion"]
        assert run["own_cpu"] > 0
    simulations = kept["simulated"]["fair"]
    assert [set(found) for found in simulations] == 5 * [{"endless-2", "first", "second"}]
    pytest.importorskip("matplotlib")
    assert (runner.output / "plots/list.svg").read_bytes().startswith(b"<?xml")


def test_runs_of_other_jobs_are_not_added(measured) -> None:
    runner, _ = measured
    code, _, error = runner(COUNT, *QUICK, "--arms", "noop", "--add")
    assert code == 2
    assert "other jobs were measured: do without --add" in error


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(runner, word) -> None:
    process = runner.begin(COUNT, "--crowded")
    eventually(ours)
    process.send_signal(word)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "its containers are removed" in error
    assert ours() == []
    eventually(probes, lambda found: found == [])  # one that was just starting ends with its parent


def test_what_a_crash_leaves_is_removed_at_the_next_start(runner, run) -> None:
    process = runner.begin(COUNT, "--crowded")
    eventually(lambda: ours() and probes())
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    eventually(probes, lambda found: not found)
    assert ours() != []
    job = run()
    code, _, error = runner(JOBS)
    assert code == 75
    assert f"{job.name}" in error
    assert "use --crowded" in error
    assert ours() == []


@pytest.mark.parametrize(
    ("jobs", "options", "code", "message"),
    [
        ('[[job]]\nname = "a"\n', (), 2, "job a: image is missing: say what to start"),
        (COUNT, ("--arms", "sjf"), 2, "no arm is called 'sjf'"),
        ('[[job]]\nname = "a"\nimage = "no-such-image"\n', (), 69, "o such image"),
    ],
)
def test_faults_are_told_in_a_line(runner, jobs, options, code, message) -> None:
    found, _, error = runner(jobs, "--crowded", *options)
    assert (found, message in error, error.count("\n")) == (code, True, 1)
