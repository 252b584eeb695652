"""dl-apply --history: each change, and how it ended, whatever ended it."""

from typing import Any

import pytest
from helpers.containers import Containers, Job, api, eventually, plan_for
from helpers.pipes import feed
from helpers.tools import Tools, records
from real_engine.test_leases import live


def history(tool: Tools, run: Containers, *arguments: str) -> list[dict[str, Any]]:
    """What is on record of the test's containers: there may be more on this machine."""
    done = tool("dl-apply", "--history", *arguments, "--format", "jsonl")
    assert done.returncode == 0
    own = [one.id for one in run.started]
    return [one for one in records(done.stdout) if one["container"]["id"] in own]


@pytest.fixture
def job(run: Containers) -> Job:
    return run()


def test_an_undo_and_what_it_undoes(job, tool, run) -> None:
    assert history(tool, run) == []
    for weight in (10, 20):
        tool("dl-apply", input=plan_for(job, {"weight": weight}))
    tool("dl-apply", "--undo")
    second, first = history(tool, run)
    assert (first["how"], second["how"]) == ("changed again", "--undo")
    assert first["ended"] == second["at"]
    assert first["container"] == {"id": job.id, "name": job.name}
    assert first["after"] == {"cpu_weight": pytest.approx(10, abs=0.3)}
    assert (first["reason"], first["run"]["policy"]) == ("test", "test")
    assert history(tool, run, job.name) == history(tool, run, job.id[:12]) == [second, first]
    assert history(tool, run, "another") == []
    table = tool("dl-apply", "--history", job.name, env={"COLUMNS": "120"}).stdout.decode()
    assert table.split()[:5] == ["CONTAINER", "AT", "BEFORE", "AFTER", "ENDED"]
    assert "--undo" in table


def test_a_renamed_container_is_found_by_both_names(job, tool, run) -> None:
    tool("dl-apply", input=plan_for(job, {"weight": 10}))
    api().rename(job.id, f"{job.name}-later")
    (change,) = history(tool, run, job.name)
    assert change["container"] == {"id": job.id, "name": job.name}
    assert history(tool, run, f"{job.name}-later") == [change]
    tool("dl-apply", "--undo")


@pytest.mark.parametrize(
    ("words", "end", "how"),
    [
        (["--restore"], "close", "run ended"),
        ([], "break", "plans broke off"),
        (["--lease", "1s"], "wait", "lease over"),
        (["--lease", "20s"], "kill", "lease over"),
    ],
)
def test_what_ends_a_stream(job, tool, run, words, end, how) -> None:
    process = tool.begin("dl-apply", *words)
    assert process.stdin is not None
    assert feed(process, live(job, {"weight": 10}))["status"] == "applied"
    if end == "close":
        process.stdin.write(b'{"kind":"close"}\n')
    if end in ("close", "break"):
        process.communicate(timeout=60)
    if end == "kill":
        process.kill()
    eventually(lambda: [one["how"] for one in history(tool, run)] == [how])


def test_a_container_that_exits(job, run, tool) -> None:
    other = run(name="other")
    process = tool.begin("dl-apply")
    feed(process, live(job, {"weight": 10}))
    api().stop(job.id, timeout=0)
    feed(process, live(other, {"weight": 10}))
    eventually(lambda: [one["how"] for one in history(tool, run, job.name)] == ["exited"])
    assert [one["how"] for one in history(tool, run, other.name)] == [None]
    process.terminate()
    process.communicate(timeout=60)
