"""Whom nobody may pause, whatever a plan says."""

from typing import Any

import pytest
from helpers.located_containers import container

from dltools.engine.distributed import Membership
from dltools.engine.pauses import ELSEWHERE, HEALTH_CHECK, NEVER, why_no_pause

CHECK = {"Config": {"Healthcheck": {"Test": ["CMD", "true"], "Interval": 10_000_000_000}}}
ALLOWED = {"dltools.pause": "allow"}


def started_with(*environ: str) -> dict[str, Any]:
    return {"Config": {"Env": list(environ)}}


@pytest.mark.parametrize(
    ("raw", "labels", "why"),
    [
        ({}, {}, ""),
        (CHECK, {}, HEALTH_CHECK),
        (CHECK, ALLOWED, ""),
        (CHECK, {"dltools.pause": "no"}, HEALTH_CHECK),
        ({"Config": {"Healthcheck": {"Test": ["CMD-SHELL", "true"]}}}, {}, HEALTH_CHECK),
        ({"Config": {"Healthcheck": {"Test": ["NONE"]}}}, {}, ""),
        ({"Config": {"Healthcheck": {"Interval": 5}}}, {}, ""),
        ({"State": {"Health": {"Status": "starting"}}}, {}, HEALTH_CHECK),  # as Podman 4 shows it
        ({"State": {"Health": {"Status": "none"}}}, {}, ""),
        ({}, {"dltools.longest_pause": "0"}, NEVER),
        ({}, ALLOWED | {"dltools.longest_pause": "0"}, NEVER),
        (started_with("RAY_ADDRESS=head:6379"), {}, ELSEWHERE),
        (started_with("RAY_ADDRESS=head:6379"), ALLOWED, ""),
        (started_with("MASTER_ADDR=10.0.0.2", "MASTER_PORT=1"), {}, ELSEWHERE),
        (started_with("MASTER_ADDR=h", "MASTER_PORT=1", "WORLD_SIZE=2"), {}, ""),  # job of two
        (started_with("WORLD_SIZE=2"), {}, ELSEWHERE),
        (started_with("WORLD_SIZE=2"), {"dltools.job": "pair"}, ""),
    ],
)
def test_why_a_container_must_not_be_paused(raw, labels, why) -> None:
    assert why_no_pause(container(raw, labels=labels)) == why


def test_what_its_processes_show_counts() -> None:
    plain = container({})
    assert why_no_pause(plain, Membership("")) == ELSEWHERE
    assert why_no_pause(plain, Membership("run7/h:29400")) == ELSEWHERE  # elastic: of how many?
    assert why_no_pause(plain, Membership("10.0.0.2:29500", 2)) == ""
