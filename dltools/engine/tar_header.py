"""The first header of a tar stream: what a file or folder is, without its content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dltools.errors import DataError

_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class TarHeader:
    """A file's or folder's name, size in bytes and time of the last change (s since 1970)."""

    name: str
    size: int
    modified: float


def first_header(chunks: Iterator[bytes]) -> TarHeader:
    """Return the header of the first member of an archive, and read no further than that.

    Raises `DataError` where there is none.
    """
    import io
    import tarfile

    read = b""
    for chunk in chunks:
        read += chunk
        try:
            member = tarfile.open(fileobj=io.BytesIO(read), mode="r:").next()  # noqa: SIM115
        except tarfile.TarError:
            member = None
        if member is not None:
            return TarHeader(member.name, member.size, member.mtime)
        if len(read) > _MOST:
            break
    raise DataError("the engine's archive does not begin with a file or a folder")
