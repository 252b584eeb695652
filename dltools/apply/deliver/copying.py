"""Copying a checkpoint out of a container, with a manifest: whole, or not at all.

The engine sends the checkpoint, a file or a folder, as a tar stream. The deliverer calls it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from dltools.apply.deliver.delivery import Delivery
from dltools.notation.json_values import table_from
from dltools.notation.resources import format_bytes
from dltools.notation.times import MICRO, format_time, from_micros
from dltools.whole_files import sync_folder

if TYPE_CHECKING:
    import tarfile


MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint"


def copy_checkpoint(delivery: Delivery, chunks: Iterator[bytes], parent: Path) -> Path:
    """Write the checkpoint in an archive, and its manifest, into a new folder of `parent`, which
    appears when all of it is on disk; return the folder.

    A folder that an earlier run has completed is returned as it is, and what it has left half
    done is removed. Raises `DamagedError` or OSError.
    """
    folder = parent / delivery.folder_name
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.glob(f".{delivery.folder_name}.*"):
        shutil.rmtree(left)
    if is_delivered(delivery, folder):
        return folder
    staged = parent / f".{delivery.folder_name}.{uuid.uuid4().hex[:8]}"
    try:
        (staged / CHECKPOINT).mkdir(parents=True)
        files = unpack(chunks, staged / CHECKPOINT)
        with (staged / MANIFEST).open("xb") as file:
            file.write(json.dumps(_manifest(delivery, files), indent=2).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        for inner in [path for path in staged.rglob("*") if path.is_dir()]:
            sync_folder(inner)
        sync_folder(staged)
        staged.rename(folder)
        sync_folder(parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return folder


def is_delivered(delivery: Delivery, folder: Path) -> bool:
    """Tell whether a folder holds a delivery."""
    found = read_manifest(folder)
    return bool(found) and found.get("key") == delivery.key


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a delivered model, {} if there is none."""
    try:
        return table_from((folder / MANIFEST).read_bytes())
    except OSError:
        return {}


def _manifest(delivery: Delivery, files: list[CopiedFile]) -> dict[str, Any]:
    met = delivery.met
    return {
        "container": {"id": delivery.container_id, "name": delivery.container_name},
        "host": delivery.host,
        "image": delivery.image,
        "metric": met and met.metric,
        "objective": met and met.objective,
        "target": met and met.target,
        "value": met and met.value,
        "time": met and met.time,
        "delivered": format_time(datetime.now(UTC)),
        "checkpoint": delivery.checkpoint,
        "size": sum(file.size for file in files),
        "sha256": digest(files),
        "files": [asdict(file) for file in files],
        "key": delivery.key,
    }


_PIECE = 1 << 20
_RESERVE = 1 << 30
"""Bytes of the disk that stay free for others."""

_END = bytes(1024)
"""What a whole tar stream ends with."""


class DamagedError(Exception):
    """An archive is not whole, or holds what cannot be copied; the message says why."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of a checkpoint: its path in the copy, its size in bytes, the SHA-256 of its bytes,
    and when it was last written (RFC 3339)."""

    path: str
    size: int
    sha256: str
    modified: str


def unpack(chunks: Iterator[bytes], folder: Path) -> list[CopiedFile]:
    """Write the files of an archive below a folder, each synced, and return them by path.

    Raises `DamagedError` where the archive is cut off or holds anything but files and folders, and
    OSError where it cannot be written.
    """
    import tarfile

    stream = _Stream(chunks)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
            copied = [file for member in archive if (file := _write(archive, member, folder))]
        stream.drain()
    except tarfile.TarError as error:
        raise DamagedError(f"the engine's archive cannot be read: {error}") from error
    if not stream.is_whole:
        raise DamagedError("the engine's archive was cut off")
    if not copied:
        raise DamagedError("the engine's archive holds no file")
    return sorted(copied, key=lambda file: file.path)


def digest(files: list[CopiedFile]) -> str:
    """Return the SHA-256 of a checkpoint: of its only file, else of a line for each file, as
    sha256sum prints them, by path."""
    if len(files) == 1:
        return files[0].sha256
    lines = "".join(f"{file.sha256}  {file.path}\n" for file in files)
    return hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> CopiedFile | None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise DamagedError(f"the engine's archive holds {member.name!r}, outside of the checkpoint")
    path = folder / name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return None
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise DamagedError(f"{member.name} is no file: name the file or the folder itself")
    path.parent.mkdir(parents=True, exist_ok=True)
    _expect_room(folder, member)
    with path.open("xb") as file:
        sha256 = _copy(content, file)
        file.flush()
        os.fsync(file.fileno())
    modified = format_time(from_micros(round(member.mtime * MICRO)))
    return CopiedFile(str(name), member.size, sha256, modified)


def _expect_room(folder: Path, member: tarfile.TarInfo) -> None:
    """Raise OSError where a file would fill the disk: a job can make one of any size for nothing,
    if it has holes."""
    free = shutil.disk_usage(folder).free
    if member.size > free - _RESERVE:
        needed, left = format_bytes(member.size), format_bytes(free)
        raise OSError(errno.ENOSPC, f"{needed} do not fit, {left} are free", member.name)


def _copy(source: IO[bytes], target: IO[bytes]) -> str:
    found = hashlib.sha256()
    while piece := source.read(_PIECE):
        found.update(piece)
        target.write(piece)
    return found.hexdigest()


class _Stream:
    """Chunks as a file to read from, which remembers how they end."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._tail = b""

    @property
    def is_whole(self) -> bool:
        """Whether what has been read ends as a tar stream does."""
        return self._tail == _END

    def read(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end."""
        while len(self._buffer) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._buffer += chunk
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        self._tail = (self._tail + data)[-len(_END) :]
        return data

    def drain(self) -> None:
        """Read to the end."""
        while self.read(_PIECE):
            pass
