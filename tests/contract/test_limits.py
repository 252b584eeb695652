"""Limits: set, seen, undone exactly, and left alone where somebody else has changed them."""

from typing import Any

import pytest
from contract.plans import lease, update
from contract.subject import Subject
from helpers.containers import eventually
from helpers.tools import Tools, complaint, records

from dltools.notation.limits import CPU_LIMITS, written

WANTED: dict[str, Any] = {"cpus": 0.4, "weight": 256, "cpuset": "0"}
"""Version 2 has weights in steps of 10.24."""


@pytest.fixture(params=CPU_LIMITS)
def limit(request: pytest.FixtureRequest, subject: Subject) -> str:
    name: str = request.param
    if name not in subject.traits.can.limits:
        pytest.skip(f"{subject.name} does not set {name}")
    return name


@pytest.fixture
def limits(subject: Subject) -> dict[str, Any]:
    found = {name: WANTED[name] for name in CPU_LIMITS if name in subject.traits.can.limits}
    if not found:
        pytest.skip(f"{subject.name} sets no limits")
    return found


def applied(subject: Subject, tool: Tools, plans: bytes, *options: str) -> list[dict[str, Any]]:
    done = tool("dl-apply", "--host", subject.url, *lease(subject), *options, input=plans)
    assert done.stderr in (b"", b"dl-apply: nothing to do: limits are already as planned\n")
    return records(done.stdout)


def undone(subject: Subject, tool: Tools, *options: str) -> list[str]:
    done = tool("dl-apply", "--host", subject.url, "--undo", *options)
    return [result["status"] for result in records(done.stdout)]


def test_the_engine_says_what_it_can(subject) -> None:
    assert subject.engine.capabilities == subject.traits.can


def test_a_limit_is_set_and_undone_exactly(subject, tool, job, limit) -> None:
    kernel, record = job.kernel(), job.record()
    (result,) = applied(subject, tool, update(subject, job, **{limit: WANTED[limit]}))
    assert (result["status"], result["after"]) == ("applied", written({limit: WANTED[limit]}))
    assert job.kernel() != kernel
    if record:
        assert (job.record() != record) is (subject.traits.can.keeps and subject.traits.records)
        assert job.record()["restart"] == record["restart"]
    (again,) = applied(subject, tool, update(subject, job, **{limit: WANTED[limit]}))
    assert again["status"] == "unchanged"
    assert undone(subject, tool) == ["applied"]
    assert (job.kernel(), job.record()) == (kernel, record)
    assert undone(subject, tool) == []


def test_all_limits_at_once_many_times(subject, tool, job, limits, state) -> None:
    kernel, record = job.kernel(), job.record()
    other = {"cpus": 0.7, "weight": 2048, "cpuset": "0"}
    for number in range(4):
        wanted = limits if number % 2 == 0 else {name: other[name] for name in limits}
        (result,) = applied(subject, tool, update(subject, job, **wanted))
        assert result["status"] == "applied"
        assert result["after"] == written(wanted)
    assert undone(subject, tool) == ["applied"]
    assert (job.kernel(), job.record()) == (kernel, record)
    assert list((state / "journal").glob("*")) == []


def test_after_a_restart_undo_is_exact_too(subject, tool, job, limits) -> None:
    if not subject.traits.restarts:
        pytest.skip(f"{subject.name} starts nothing again")
    kernel, record = job.kernel(), job.record()
    for weight in (300, 400, 500, 600, 700):  # more changes than are known again
        wanted = limits | ({"weight": weight} if "weight" in limits else {})
        applied(subject, tool, update(subject, job, **wanted))
    before = job.kernel()
    job.restart()
    is_kept = subject.traits.can.keeps and subject.traits.records
    assert job.kernel() == (before if is_kept else kernel)
    (result,) = applied(subject, tool, update(subject, job, **limits))
    assert result["status"] == "applied", "a restart is nobody's change"
    assert undone(subject, tool) == ["applied"]
    job.restart()
    assert (job.kernel(), job.record()) == (kernel, record)


def test_a_paused_container_is_changed_and_undone(subject, tool, job, limits) -> None:
    if not subject.traits.can.pauses:
        pytest.skip(f"{subject.name} does not pause")
    kernel, record = job.kernel(), job.record()
    job.pause()
    done = tool(
        "dl-apply", "--host", subject.url, *lease(subject), input=update(subject, job, **limits)
    )
    (result,) = records(done.stdout)
    assert (result["status"], complaint(done.stderr).split(": ")[-1]) == (
        "applied",
        "paused, not by dl-apply",
    )
    assert undone(subject, tool) == ["applied"]
    assert job.is_frozen
    assert (job.kernel(), job.record()) == (kernel, record)
    job.unpause()


def test_status_tells_what_is_changed(subject, tool, job, limits) -> None:
    applied(subject, tool, update(subject, job, **limits))
    (held,) = tool.status("--host", subject.url)
    assert held["container"] == {"id": job.id, "name": job.name}
    assert {name: held["now"][name] for name in written(limits)} == written(limits)
    undone(subject, tool)
    done = tool("dl-apply", "--host", subject.url, "--status")
    assert (done.returncode, done.stdout) == (0, b"")


def test_another_run_knows_the_engine_again(subject, tool, job, limits) -> None:
    from dltools.engine.address import Address
    from dltools.engine.registry import open_engine

    applied(subject, tool, update(subject, job, **limits))
    again = open_engine(Address(subject.url, "--host"))
    assert again.id == subject.engine.id != ""
    assert again.host == subject.engine.host != ""
    assert undone(subject, tool) == ["applied"]


def test_what_somebody_else_has_changed_is_left_alone(subject, tool, job) -> None:
    if "weight" not in subject.traits.can.limits:
        pytest.skip(f"{subject.name} sets no weight")
    kernel, record = job.kernel(), job.record()
    applied(subject, tool, update(subject, job, weight=300))
    job.change_weight(512)
    changed = job.kernel()
    done = tool("dl-apply", "--host", subject.url, "--undo")
    (result,) = records(done.stdout)
    assert result["status"] == "skipped"
    assert "somebody else" in result["error"]
    assert job.kernel() == changed
    (result,) = records(
        tool(
            "dl-apply",
            "--host",
            subject.url,
            *lease(subject),
            input=update(subject, job, weight=800),
        ).stdout
    )
    assert result["status"] in ("skipped", "stale")
    assert job.kernel() == changed
    assert undone(subject, tool, "--force") == ["applied"]
    assert (job.kernel(), job.record()) == (kernel, record)


def test_a_container_that_ends_in_between_is_stale(subject, tool, limits) -> None:
    job = subject.start("sleep 99; exit 0", "ends")
    kernel, record = job.kernel(), job.record()
    plans = update(subject, job, **limits)
    applied(subject, tool, plans)
    job.kill()
    eventually(lambda: job.id not in {one.id for one in subject.engine.containers()})
    done = tool("dl-apply", "--host", subject.url, *lease(subject), input=plans)
    (result,) = records(done.stdout)
    assert result["status"] == "stale"
    assert done.returncode == 75
    assert tool("dl-apply", "--host", subject.url, "--undo").returncode == 0
    if subject.traits.restarts:
        job.restart()
        assert (job.kernel(), job.record()) == (kernel, record)


BAD: list[dict[str, Any]] = [
    {"cpus": 0.001},
    {"cpus": -1},
    {"weight": 1},
    {"weight": 262_145},
    {"cpuset": "7777"},
    {"cpuset": "0-900"},
    {"cpuset": "x"},
]


def test_what_the_kernel_would_refuse_is_never_sent(subject, tool, job) -> None:
    kernel, record = job.kernel(), job.record()
    for wanted in BAD:
        done = tool(
            "dl-apply", "--host", subject.url, *lease(subject), input=update(subject, job, **wanted)
        )
        assert done.returncode in (0, 1, 65), (wanted, done.stdout)
        if done.returncode == 65:
            assert complaint(done.stderr)
            continue
        (result,) = records(done.stdout)
        assert result["status"] in ("failed", "skipped")
        assert result["error"]
        assert "\n" not in result["error"]
    assert (job.kernel(), job.record()) == (kernel, record)
    assert undone(subject, tool) == []
