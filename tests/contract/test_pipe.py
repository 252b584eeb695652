"""The pipe as typed, in every mode that the engine can; and a line for each that it cannot."""

import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from contract.plans import lease, plan, update
from contract.subject import Relay, Subject
from helpers.containers import PATIENCE, eventually
from helpers.pipes import give, watchdogs
from helpers.tools import records

from dltools.actions.plan_lines import dump_close
from dltools.actions.plans import Op

MODES: dict[str, frozenset[str]] = {
    "quota": frozenset({"cpus"}),
    "weight": frozenset({"cpu_weight"}),
    "priority": frozenset({"cpu_weight"}),
}


@pytest.mark.parametrize("mode", [*MODES, "rotate"])
def test_the_pipe_as_typed_changes_and_undo_restores(subject, tool, busy, tmp_path, mode) -> None:
    can = subject.traits.can
    if not (can.pauses if mode == "rotate" else MODES[mode] <= can.limits):
        pytest.skip(f"{subject.name} cannot do this")
    before = [(job.kernel(), job.record()) for job in busy]
    host = f"--host {subject.url}"
    # srtf needs to predict before it sets quotas or gives turns.
    policy = "fair" if mode in ("quota", "rotate") else "srtf"
    line = (
        f"dl-probe {host} {' '.join(subject.only)} -i 1 -c 5"
        f" | dl-plan -p {policy} --realize {mode} | dl-apply {host}; echo ${{PIPESTATUS[@]}} >&2"
    )
    done = tool.shell(line, tmp_path / "bin")
    words = done.stderr.decode().splitlines()
    assert words[-1].split() in (["0", "0", "0"], ["0", "0", "75"]), done.stderr
    results = records(done.stdout)
    assert not [one for one in results if one["status"] == "failed"], results
    if mode in ("quota", "rotate") or (mode == "priority" and subject.traits.weights_compare):
        assert [one for one in results if one["status"] == "applied"], results
    undone = tool("dl-apply", "--host", subject.url, "--undo")
    assert undone.returncode == 0
    assert not any(job.is_frozen for job in busy)
    assert [(job.kernel(), job.record()) for job in busy] == before


def test_what_the_engine_cannot_is_not_planned(subject, tool, busy, tmp_path) -> None:
    before = [(job.kernel(), job.record()) for job in busy]
    recording = str(tmp_path / "seen.arrows")
    probe = tool("dl-probe", "--host", subject.url, *subject.only, "-i", "1", "-c", "5")
    Path(recording).write_bytes(probe.stdout)
    missing = subject.engine.capabilities.missing(subject.engine.inspect(busy[0].id))
    for mode, needed in (*MODES.items(), ("rotate", frozenset({"pause"}))):
        planned = records(tool("dl-plan", "-p", "fair", "--realize", mode, recording).stdout)
        refused = [one["nothing"] for one in planned if one.get("nothing")][-1:]
        if needed.isdisjoint(missing):
            assert not refused or "is not possible" not in refused[0]
        else:
            assert not [one for one in planned if one["kind"] == "action"]
            assert refused[0].startswith(f"--realize {mode} is not possible: the engine ")
    plans = tool("dl-plan", recording).stdout
    applied = ("dl-apply", "--host", subject.url, "--lease", "5", "--hold", "1s")
    done = tool(*applied, input=plans)
    assert not [one for one in records(done.stdout) if one["status"] == "skipped"], done.stderr
    assert tool("dl-apply", "--host", subject.url, "--undo").returncode == 0
    assert [(job.kernel(), job.record()) for job in busy] == before


# Leases


@pytest.fixture
def settings(subject: Subject) -> dict[str, Any]:
    wanted: dict[str, Any] = {"weight": 300, "cpus": 0.4, "cpuset": "0"}
    found = {name: wanted[name] for name in wanted if name in subject.traits.can.limits}
    if not found:
        pytest.skip(f"{subject.name} sets no limits")
    return dict([next(iter(found.items()))])


@pytest.mark.parametrize("end", ["killed", "silent", "closed"])
def test_a_lease_ends(subject, tool, job, settings, state, end) -> None:
    before = job.kernel(), job.record()
    process = tool.begin("dl-apply", "--host", subject.url, "--lease", "2")
    assert process.stdin is not None
    assert process.stdout is not None
    give(process, update(subject, job, live=True, **settings))
    (result,) = records(process.stdout.readline())
    assert result["status"] == "applied"
    assert job.kernel() != before[0]
    eventually(lambda: watchdogs(state))
    if end == "killed":
        process.kill()
    elif end == "closed":
        process.stdin.write(dump_close().encode())
        process.stdin.close()
        process.stdin = None  # else it would be closed again
    eventually(lambda: (job.kernel(), job.record()), lambda found: found == before, seconds=60)
    if end == "silent":
        process.send_signal(signal.SIGTERM)
    process.wait(60 * PATIENCE)
    eventually(lambda: watchdogs(state) == [], seconds=60)
    assert list((state / "journal").glob("*")) == []


def test_the_next_run_undoes_what_the_watchdog_could_not(
    subject, tool, job, settings, state
) -> None:
    before = job.kernel(), job.record()
    process = tool.begin("dl-apply", "--host", subject.url)
    assert process.stdout is not None
    give(process, update(subject, job, live=True, **settings))
    process.stdout.readline()
    (watchdog,) = eventually(lambda: watchdogs(state))
    os.kill(watchdog, signal.SIGSTOP)
    process.kill()
    process.wait(60 * PATIENCE)
    os.kill(watchdog, signal.SIGKILL)
    assert job.kernel() != before[0]
    done = tool("dl-apply", "--host", subject.url, input=plan(subject))
    assert b"undone now" in done.stderr
    assert (job.kernel(), job.record()) == before


# Refusals


@pytest.fixture
def relay(subject: Subject) -> Iterator[Relay | None]:
    with subject.relay() if subject.traits.is_relayed else nullcontext() as found:
        yield found


def test_what_the_engine_cannot_is_refused_in_a_line_and_not_sent(
    subject, tool, job, relay
) -> None:
    can, host = subject.traits.can, subject.engine.host
    wanted: dict[str, Any] = {"weight": 300, "cpus": 0.4, "cpuset": "0"}
    unable = [(Op.UPDATE, job, {name: wanted[name]}) for name in wanted if name not in can.limits]
    if not can.pauses:
        unable += [(Op.PAUSE, job, {}), (Op.ROTATE, job, {"group": 0, "turn_s": 1.0})]
    if not can.creates:
        unable.append((Op.MIGRATE, job, {}))
    if not unable:
        pytest.skip(f"{subject.name} can do all")
    before = job.kernel(), job.record()
    done = tool(
        "dl-apply", "--host", relay.url if relay else subject.url, input=plan(subject, *unable)
    )
    results = records(done.stdout)
    assert [result["status"] for result in results] == ["skipped"] * len(unable), done.stderr
    for result in results:
        assert result["error"].startswith(f"the engine of host {host} cannot ")
        assert "\n" not in result["error"]
        assert can.why in result["error"]
    assert (job.kernel(), job.record()) == before
    assert not job.is_frozen
    if relay:
        assert relay.changes == []


def test_a_change_that_would_stay_is_refused_where_all_must_end(
    subject, tool, job, settings
) -> None:
    can = subject.traits.can
    if not can.leases_only:
        pytest.skip(f"{subject.name} takes changes that stay")
    before = job.kernel(), job.record()
    actions = [(Op.UPDATE, job, settings)] + ([(Op.PAUSE, job, {})] if can.pauses else [])
    for options in ((), ("--lease", "0"), ("--dry-run",)):
        done = tool("dl-apply", "--host", subject.url, *options, input=plan(subject, *actions))
        for result in records(done.stdout):
            assert (result["status"], result["error"]) == (
                "skipped",
                "the engine takes only changes with a lease: give --lease, such as --lease 10m",
            )
    assert (job.kernel(), job.record()) == before
    assert not job.is_frozen


def test_looking_and_a_dry_run_change_nothing(subject, tool, job, settings, relay) -> None:
    before = job.kernel(), job.record()
    url = relay.url if relay else subject.url
    assert tool("dl-probe", "--host", url, *subject.only).returncode == 0
    dry = ("--dry-run", *lease(subject))
    done = tool("dl-apply", "--host", url, *dry, input=update(subject, job, **settings))
    assert [result["status"] for result in records(done.stdout)] == ["planned"]
    assert tool("dl-apply", "--host", url, "--status").returncode == 0
    assert (job.kernel(), job.record()) == before
    if relay:
        assert relay.changes == []
