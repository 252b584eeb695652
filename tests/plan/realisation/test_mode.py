"""The mode that suits a host."""

from __future__ import annotations

import pytest
from helpers.shared_hosts import host, job

from dltools.plan.realisation.mode import Mode, ModeChoice, RealisationOptions, choose_mode


@pytest.mark.parametrize(
    ("threads", "cpus", "expected"),
    [
        ((2, 2), 2.0, Mode.PRIORITY),
        ((1, 1, 1), 2.0, Mode.WEIGHT),  # single threads wait for no others
        ((2, 2), 4.0, Mode.WEIGHT),  # all fit
        ((8,), 2.0, Mode.WEIGHT),  # alone
        ((None, None, None), 2.0, Mode.WEIGHT),
    ],
)
def test_the_default_looks_at_threads_and_cores(
    threads: tuple[int | None, ...], cpus: float, expected: Mode
) -> None:
    jobs = [job(str(number), count) for number, count in enumerate(threads)]
    assert choose_mode(RealisationOptions(), host(*jobs, cpus=cpus)).mode is expected


def test_beside_serving_containers_the_default_is_weight() -> None:
    jobs = [job("a", 4), job("b", 4), job("s", 4, dltools_qoe="0.1")]
    assert choose_mode(RealisationOptions(), host(*jobs)).mode is Mode.WEIGHT


def test_a_mode_that_is_asked_for_is_taken() -> None:
    options = RealisationOptions(Mode.ROTATE, quantum_s=3.0)
    assert choose_mode(options, host(job("a"))) == ModeChoice(Mode.ROTATE, "as asked", 3.0)
