"""What goes wrong in a connection to an engine, in plain words."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dltools.engine.docker.faults import connection_errors, raise_refusal
from dltools.engine.interface import GoneError, RefusedError
from dltools.errors import AccessError, DltoolsError, UnavailableError

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


@pytest.mark.parametrize(
    ("mine", "advice"),
    [
        (0, "run as root: its socket is root's alone, as that of Snap's Docker is"),
        (12345, "run as root or join the group docker"),
        (None, "run as root or join the group docker"),
    ],
)
def test_who_may_use_an_engine_depends_on_the_group_of_its_socket(
    mine: int | None, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stat(path: Path) -> SimpleNamespace:
        if mine is None or str(path) != "/run/docker.sock":
            raise FileNotFoundError(path)
        return SimpleNamespace(st_gid=mine)

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(AccessError, match=advice), connection_errors("unix:///run/docker.sock"):
        raise PermissionError(13, "Permission denied")
