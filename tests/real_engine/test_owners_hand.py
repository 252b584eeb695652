"""Owners use their containers beside the pipe, and all ends as on Docker alone: a short run of
tests/trust/owners_hand.py."""

import os
import random

import pytest
from helpers.owners_hand import Stages, try_hand

pytestmark = pytest.mark.slow

KINDS = ("rename", "cp", "top", "start", "unpause", "update")
"""All but those whose end depends on the time that they have, on a machine that others use."""


def test_owners_commands_end_as_on_docker_alone(engine) -> None:
    del engine
    seed = random.randrange(1 << 32)
    url = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    arms = Stages("flowcon", "auto"), Stages("srtf", "rotate")
    hand = try_hand(url, seed, arms, 4, KINDS)
    assert not hand.broken, "\n\n".join(hand.broken)
