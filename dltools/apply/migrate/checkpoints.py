"""Whether two hosts see the same checkpoint of a job."""

from __future__ import annotations

from dltools.apply.migrate.faults import FailedError
from dltools.engine.containers import Engine, GoneError
from dltools.engine.tar_header import TarHeader, first_header
from dltools.errors import DataError


def expect_checkpoint(engine: Engine, id_: str, path: str) -> TarHeader:
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
