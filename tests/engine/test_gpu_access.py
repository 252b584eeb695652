"""How containers got GPUs, and which shares of them at their start."""

import json
from pathlib import Path

import pytest

from dltools.engine.gpu_access import (
    FRAGILE,
    LASTING,
    access_by_specification,
    share_at_start,
    specification,
)

ID = "a" * 64


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


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    """A root with process 7, whose parent 5 works in the folder of the container."""
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/stat").write_text("7 (a) b) S 5 7 7 0 -1\n")
    folder = tmp_path / "run" / ID
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"linux": {"devices": [{"path": "/dev/x"}]}}))
    (tmp_path / "proc/5").mkdir()
    (tmp_path / "proc/5/cwd").symlink_to(folder)
    return tmp_path


def test_the_specification_is_in_the_folder_of_the_shim(shim) -> None:
    assert specification(ID, 7, shim) == {"linux": {"devices": [{"path": "/dev/x"}]}}
    assert specification("b" * 64, 7, shim) == {}
    assert specification(ID, 8, shim) == {}
    (shim / "run" / ID / "config.json").write_text("{")
    assert specification(ID, 7, shim) == {}


@pytest.mark.parametrize(
    ("spec", "access"),
    [
        ({"linux": {"devices": [{"path": "/dev/nvidia0"}]}}, LASTING),
        ({"linux": {"devices": [{"path": "/dev/fuse"}, None]}}, FRAGILE),
        ({"linux": None}, FRAGILE),
        ({}, FRAGILE),
    ],
)
def test_what_the_specification_names_lasts(spec, access) -> None:
    assert access_by_specification(spec, is_asked=True) is access
