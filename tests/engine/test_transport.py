"""What an engine's refusal means."""

from __future__ import annotations

import json

import pytest

from dltools.engine.transport import GoneError, RefusedError, raise_refusal
from dltools.errors import DltoolsError, UnavailableError

DIALLING = (
    'Cannot unpause container 1: connection error: desc = "transport: Error while dialing dial '
    'unix:///run/docker/containerd/containerd.sock: timeout": unavailable'
)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (404, "No such container: 1", GoneError),
        (409, "Container 1 is already paused", RefusedError),
        (500, "Cannot update container 1: transport is closing: unavailable", UnavailableError),
        (500, DIALLING, UnavailableError),
        (400, "invalid mount: /run/containerd.sock", RefusedError),
        (500, "", RefusedError),
    ],
)
def test_a_refusal_is_told_from_an_engine_that_stops(
    status: int, message: str, kind: type[DltoolsError]
) -> None:
    with pytest.raises(kind) as caught:
        raise_refusal(status, json.dumps({"message": message}).encode())
    assert type(caught.value) is kind
    assert message in str(caught.value)


def test_an_answer_without_a_message_is_told_by_its_status() -> None:
    with pytest.raises(RefusedError, match="status 500"):
        raise_refusal(500, b"")
    raise_refusal(204, b"")
