"""Merging the small files of a directory of recordings."""

from __future__ import annotations

from pathlib import Path

from dltools.cli.exits import print_message
from dltools.cli.words import size
from dltools.errors import InputOutputError
from dltools.observations.recording.compaction import compact
from dltools.observations.recording.directory import RecordingDirectory


def compact_directory(root: Path) -> None:
    """Merge small files, and say what became of them. Raises `InputOutputError`, and what `compact`
    raises."""
    if not root.is_dir():
        raise InputOutputError(f"{root}: no such directory")
    done = compact(RecordingDirectory(root))
    if done.files_before:
        print_message(
            f"{root}: merged {done.files_before} files of {size(done.bytes_before)} into "
            f"{done.files_after} of {size(done.bytes_after)}, {done.rows} rows"
        )
