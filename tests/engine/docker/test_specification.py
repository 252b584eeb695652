"""Where the specification is with which the runtime has started a container."""

import json
from pathlib import Path

import pytest

from dltools.engine.docker.engine import specification

ID = "a" * 64


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
