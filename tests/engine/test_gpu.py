"""How a container got its GPU, from what the engine says of it."""

from __future__ import annotations

from typing import Any

import pytest

from dltools.engine.containers import Container, RefusedError
from dltools.engine.gpu import Access, access, is_usable
from dltools.errors import UnavailableError

GPUS_ALL = {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
GPUS_NVIDIA = {**GPUS_ALL, "Driver": "nvidia"}
CDI = {"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=0"], "Capabilities": None}
NVIDIA_DEVICE = {"PathOnHost": "/dev/nvidia0", "PathInContainer": "/dev/nvidia0"}
FUSE = {"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse"}
VISIBLE = ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"]


def container(environment: list[str] | None = None, **host_config: Any) -> Container:
    raw = {"Config": {"Env": environment}}
    return Container("c" * 64, "job", "", "running", 1, None, False, {}, host_config, raw)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (container(), Access.NONE),
        (container(DeviceRequests=None, Devices=None, Runtime="runc"), Access.NONE),
        (container(Devices=[FUSE]), Access.NONE),
        (container(DeviceRequests=[GPUS_ALL]), Access.HOOK),
        (container(DeviceRequests=[GPUS_NVIDIA]), Access.HOOK),
        (container(DeviceRequests=[CDI]), Access.SPECIFIED),
        (container(DeviceRequests=[CDI, GPUS_ALL]), Access.HOOK),
        (container(Devices=[NVIDIA_DEVICE]), Access.SPECIFIED),
        (container(VISIBLE, Runtime="nvidia"), Access.HOOK),
        (container(VISIBLE, Runtime="runc"), Access.NONE),
        (container(Runtime="nvidia"), Access.NONE),
        (container(["NVIDIA_VISIBLE_DEVICES=void"], Runtime="nvidia"), Access.NONE),
        (container(["NVIDIA_VISIBLE_DEVICES=none"], Runtime="nvidia"), Access.NONE),
        (container(["NVIDIA_VISIBLE_DEVICES="], Runtime="nvidia"), Access.NONE),
        (container([*VISIBLE, "NVIDIA_VISIBLE_DEVICES=void"], Runtime="nvidia"), Access.NONE),
        (container(["NVIDIA_VISIBLE_DEVICES=GPU-8a5"], Runtime="nvidia"), Access.HOOK),
        (container(VISIBLE, Runtime="nvidia", DeviceRequests=[CDI]), Access.HOOK),
    ],
)
def test_access(case: Container, expected: Access) -> None:
    assert access(case) is expected


class Answering:
    """An engine in which commands end in one way."""

    def __init__(self, answer: int | Exception) -> None:
        self._answer = answer

    def run(self, *_: object) -> int:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (0, True),
        (1, False),
        (2, False),
        (126, None),
        (127, None),
        (RefusedError("it is paused"), None),
        (UnavailableError("no engine"), None),
    ],
)
def test_is_usable(answer: int | Exception, expected: bool | None) -> None:
    assert is_usable(Answering(answer), container()) is expected  # type: ignore[arg-type]
