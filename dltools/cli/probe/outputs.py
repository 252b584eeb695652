"""Where observations go: a terminal, a pipe, a file, a directory of recordings."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from dltools.cli import destinations, formats
from dltools.cli.console import make_console
from dltools.cli.data import on_screen
from dltools.cli.exits import complain
from dltools.cli.observation_formats import STREAM, SUFFIXES, WHOLE, ObservationFormat
from dltools.errors import OutputError
from dltools.observations.formats.registry import FORMATS

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.observations.formats.base import Format, Writer
    from dltools.observations.table import Row


def is_dataset(output: str) -> bool:
    """Tell whether -o names a directory of recordings: one that is there, or ends in a slash."""
    return output.endswith("/") or Path(output).is_dir()


def chosen(wanted: ObservationFormat, output: str | None, *, streaming: bool) -> ObservationFormat:
    """Return the format to write in; binary is refused for a terminal.

    Raises `OutputError` for the root directory, which is nobody's directory of recordings.
    """
    if output is not None and is_dataset(output):
        if not output:
            raise OutputError("cannot create the output: its name is empty")
        if Path(output).exists() and Path(output).samefile("/"):
            raise OutputError(f"cannot create {output}: it is the root directory; name another")
        if wanted not in (ObservationFormat.AUTO, WHOLE):
            raise typer.BadParameter(f"a directory holds Parquet, not {wanted}; use -o FILE")
        return WHOLE
    terminal = sys.stdout.isatty() if output is None else destinations.is_terminal(output)
    wanted = formats.by_name(wanted, output, SUFFIXES)
    if wanted is not ObservationFormat.AUTO:
        if terminal and _is_binary(wanted):
            raise typer.BadParameter(
                f"{wanted} is binary and standard output is a terminal; use -o FILE or a pipe"
            )
        return wanted
    if terminal:
        return ObservationFormat.TABLE
    return STREAM if streaming else WHOLE


@contextmanager
def opened(
    format_: ObservationFormat, output: str | None, *, streaming: bool, rotate: float, since: float
) -> Iterator[Writer]:
    """Open the output; it is complete when the block ends, however it ends."""
    if output is None and format_ is ObservationFormat.TABLE and streaming and _is_live():
        from dltools.cli.probe.live import LiveTable

        with LiveTable() as live:
            yield live
    elif output is None:
        yield from _to_stdout(format_)
    elif is_dataset(output):
        yield from _to_dataset(Path(output), rotate if streaming else None, since)
    elif streaming and _holds_one_sample(format_) and destinations.is_replaceable(Path(output)):
        yield _Replacing(FORMATS[format_], Path(output))
    elif streaming:
        with destinations.written_in_place(Path(output)) as file:
            made = _writer(format_, file)
            try:
                yield made
            finally:
                made.close()
    else:
        with destinations.output_file(Path(output)) as staged:
            made = _writer(format_, staged)
            yield made
            made.close()


def _is_binary(format_: ObservationFormat) -> bool:
    return format_ in FORMATS and FORMATS[format_].is_binary


def _holds_one_sample(format_: ObservationFormat) -> bool:
    return format_ in FORMATS and FORMATS[format_].holds_one_sample


def _is_live() -> bool:
    """Tell whether standard output is a terminal on which a table can be drawn again."""
    console = make_console()
    return sys.stdout.isatty() and console.is_terminal and not console.is_dumb_terminal


def _writer(format_: ObservationFormat, out: IO[bytes]) -> Writer:
    if format_ is ObservationFormat.TABLE:
        return _TableWriter(out)
    return FORMATS[format_].writer(on_screen(out))  # type: ignore[arg-type]


def _to_stdout(format_: ObservationFormat) -> Iterator[Writer]:
    made = _writer(format_, sys.stdout.buffer)
    try:
        yield made
    except BrokenPipeError:
        raise
    except BaseException:
        made.close()
        raise
    made.close()


def _to_dataset(root: Path, rotate: float | None, since: float) -> Iterator[Writer]:
    from dltools.observations.recording.recorder import Recorder

    made = Recorder(root, rotate_s=rotate, since_s=since)
    if made.recovered:
        complain(f"{root}: added what {made.recovered} killed recorder(s) had left")
    try:
        yield made
    finally:
        made.close()


class _Replacing:
    """A file that each sample replaces as a whole, as the textfile collector wants it."""

    def __init__(self, format_: Format, output: Path) -> None:
        self._format = format_
        self._output = output

    def write(self, table: pa.Table) -> None:
        with destinations.output_file(self._output) as staged:
            made = self._format.writer(staged)  # type: ignore[arg-type]
            made.write(table)
            made.close()

    def close(self) -> None:
        pass


class _TableWriter:
    """A table for people: a row per container, with rates since the sample before."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
        self._earlier: dict[str, Row] = {}

    def write(self, table: pa.Table) -> None:
        from dltools.cli.probe.tables import containers_table

        console = make_console(self._out)
        rows = table.to_pylist()
        console.print(containers_table(rows, self._earlier))
        if not any(row["kind"] in ("container", "progress") for row in rows):
            complain("no containers are running, or none that the filters let through")

    def close(self) -> None:
        self._out.flush()
        self._out.detach()
