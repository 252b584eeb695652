"""An administrator's `docker update` is noticed, said once, and left alone."""

import threading
from contextlib import suppress
from typing import Any

import pytest
from helpers.containers import plan_for
from helpers.tools import complaint, records

from dltools.engine.interface import GoneError
from dltools.engine.limits.cpu_limits import Locator, settings_in_force
from dltools.plan.realisation.settings import Settings


def outcomes(output: bytes) -> list[tuple[str, Any]]:
    return [(result["status"], result["after"].get("cpus")) for result in records(output)]


def test_an_administrator_s_update_is_left_alone_and_said_once(tool, run) -> None:
    job = run(nano_cpus=1_500_000_000)
    assert tool("dl-apply", input=plan_for(job, {"cpus": 0.4})).returncode == 0
    job.engine.update(job.id, {"NanoCpus": 1_000_000_000})
    plans = b"".join(plan_for(job, {"cpus": cpus}, {"cpus": 1.0}) for cpus in (0.3, 0.2, 1.0))
    done = tool("dl-apply", input=plans)
    assert outcomes(done.stdout) == [("skipped", 1.0), *[("skipped", None)] * 2]
    assert "somebody else has changed its settings" in complaint(done.stderr)
    assert job.kernel_cpus == pytest.approx(1.0)


def test_a_container_that_is_killed_is_not_taken_for_changed(run) -> None:
    """While it ends, the kernel shows its process in the root, controller by controller."""
    seen: list[Settings] = []
    for name in "abcd":
        job = run(name=name, nano_cpus=1_500_000_000, cpu_shares=700)
        weight = round(job.kernel_weight, 2)
        locator, killer = Locator(job.engine), threading.Thread(target=job.remove)
        killer.start()
        with suppress(GoneError):
            while True:
                seen.append(settings_in_force(locator.find(job.id)))
        killer.join()
    in_force = {"cpus": 1.5, "weight": weight, "cpuset": None}
    on_record = {**in_force, "weight": 700.0}  # version 2 makes another weight of it
    assert [one for one in seen if one not in (in_force, on_record)] == []


def test_options_bound_what_a_plan_may_change(tool, run) -> None:
    jobs = [run(name=name, labels={"team": name}) for name in ("a", "b")]
    plans = b"".join(plan_for(job, {"cpus": 0.4}) for job in jobs)
    for options, expected in (
        (("--label", "team=b", "--name", "nobody"), ["skipped", "skipped"]),
        (("--max-changes", "0"), ["skipped", "skipped"]),
        (("--max-age", "1h", "--label", "team=b"), ["skipped", "applied"]),
        (("--name", "-a$"), ["applied", "skipped"]),
    ):
        done = tool("dl-apply", *options, input=plans)
        assert (done.returncode, done.stderr) == (0, b"")
        assert [result["status"] for result in records(done.stdout)] == expected
