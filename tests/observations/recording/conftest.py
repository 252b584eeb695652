"""A directory of recordings, and a small file system."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.recordings import recording

from dltools.observations.recording.directory import RecordingDirectory
from dltools.observations.recording.recorder import Journal


@pytest.fixture
def made(tmp_path: Path) -> RecordingDirectory:
    return recording(tmp_path)


@pytest.fixture
def journal(made: RecordingDirectory) -> Journal:
    return Journal(made, 3600)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)
