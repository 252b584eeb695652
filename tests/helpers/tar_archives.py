"""Tar archives as an engine sends them."""

import io
import tarfile
from collections.abc import Mapping

MODIFIED = 1_700_000_000


def archive(files: Mapping[str, bytes | None], links: Mapping[str, str] | None = None) -> bytes:
    """Return an archive of files by name, folders where the content is None, and links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.mtime = MODIFIED
            if content is None:
                member.type = tarfile.DIRTYPE
            else:
                member.size = len(content)
            made.addfile(member, io.BytesIO(content or b""))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            made.addfile(member)
    return buffer.getvalue()
