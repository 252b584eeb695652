"""Whether two hosts see the same checkpoint of a job."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from dltools.apply.migrate.faults import FailedError
from dltools.engine.interface import Engine, GoneError
from dltools.errors import DataError

_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class FileHeader:
    """A file's or folder's name, size in bytes and time of the last change (s since 1970)."""

    name: str
    size: int
    modified: float


def first_header(chunks: Iterator[bytes]) -> FileHeader:
    """Return the header of the first member of an archive, and read no further than that.

    Raises `DataError` where there is none.
    """
    read = b""
    for chunk in chunks:
        read += chunk
        try:
            member = tarfile.open(fileobj=io.BytesIO(read), mode="r:").next()  # noqa: SIM115
        except tarfile.TarError:
            member = None
        if member is not None:
            return FileHeader(member.name, member.size, member.mtime)
        if len(read) > _MOST_BYTES:
            break
    raise DataError("the engine's archive does not begin with a file or a folder")


def expect_checkpoint(engine: Engine, id_: str, path: str) -> FileHeader:
    """Return what a container's checkpoint is. Raises `FailedError` where there is none."""
    try:
        return first_header(engine.archive(id_, path))
    except (GoneError, DataError) as error:
        raise FailedError(f"there is no checkpoint {path} on {engine.host}") from error


def not_shared(source: str, target: str) -> FailedError:
    """Return what to raise where two hosts have different checkpoints."""
    return FailedError(
        f"{target} has another checkpoint than {source}: they do not share the volume"
    )
