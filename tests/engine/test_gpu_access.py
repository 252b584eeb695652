"""How containers got GPUs, and which shares of them at their start."""

import pytest

from dltools.engine.gpu_access import access_by_specification, share_at_start


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["PATH=/bin"], ""),
        (["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"], "MPS, 50 % of threads"),
        (["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=12.5"], "MPS, 12 % of threads"),
        (["CUDA_DEVICE_SM_LIMIT=30"], "HAMi, 30 % of the multiprocessors"),
        (["NVIDIA_VISIBLE_DEVICES=MIG-1f2e"], "MIG instance"),
        (["CUDA_VISIBLE_DEVICES=MIG-1", "NVIDIA_VISIBLE_DEVICES=MIG-1"], "MIG instance"),
        (["CUDA_DEVICE_SM_LIMIT=\x1b[31m", "NVIDIA_VISIBLE_DEVICES=all"], ""),
    ],
)
def test_shares_that_containers_were_started_with(entries, expected) -> None:
    assert share_at_start("\0".join(entries).encode()) == expected


@pytest.mark.parametrize(
    ("spec", "access"),
    [
        ({"linux": {"devices": [{"path": "/dev/nvidia0"}]}}, (True, False)),
        ({"linux": {"devices": [{"path": "/dev/fuse"}, None]}}, (True, True)),
        ({"linux": None}, (True, True)),
        ({}, (True, True)),
    ],
)
def test_what_the_specification_names_lasts(spec, access) -> None:
    assert access_by_specification(spec, is_asked=True) == access
