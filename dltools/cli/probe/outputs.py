"""Where observations go: a terminal, a pipe, a file, a directory of recordings."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dltools.cli import destinations
from dltools.cli.destinations import make_console, printable_file, redrawn
from dltools.cli.exits import print_message
from dltools.cli.formats import ObservationFormat, is_directory
from dltools.observations.formats.registry import get_format
from dltools.observations.newest_rows import ObservedHosts

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType

    from dltools.cli.probe.request import Request
    from dltools.observations.formats.base import Format, Writer


@contextmanager
def open_output(request: Request) -> Iterator[Writer]:
    """Open the output; it is complete when the block ends, however it ends."""
    format_, is_stream = request.format, request.is_stream
    output = request.output or "/dev/stdout"
    if not is_directory(output):
        destinations.check(Path(output), request.logs)
    if request.output is None:
        console = make_console()
        if is_stream and format_ is ObservationFormat.TABLE and _is_live(console):
            with redrawn(console) as draw:
                yield _TableWriter(console, draw)
        else:
            yield from _to_stdout(format_)
    elif is_directory(output):
        yield from _to_directory(Path(output), request.rotate_s, request.since_s)
    else:
        yield from _to_file(Path(output), format_, is_stream=is_stream)


def _to_file(file: Path, format_: ObservationFormat, *, is_stream: bool) -> Iterator[Writer]:
    if not is_stream:
        with destinations.output_file(file) as staged:
            made = _writer(format_, staged)
            yield made
            made.close()
    elif holds_one_sample(format_) and destinations.is_replaceable(file):
        yield _Replacing(get_format(format_), file)
    else:
        with destinations.written_in_place(file) as out, closing(_writer(format_, out)) as made:
            yield made


def holds_one_sample(format_: ObservationFormat) -> bool:
    """Tell whether a sample takes the place of the one before in a format."""
    return format_ is not ObservationFormat.TABLE and get_format(format_).holds_one_sample


def _is_live(console: Console) -> bool:
    """Tell whether standard output is a terminal on which a table can be drawn again."""
    return sys.stdout.isatty() and console.is_terminal and not console.is_dumb_terminal


def _writer(format_: ObservationFormat, out: IO[bytes]) -> Writer:
    if format_ is ObservationFormat.TABLE:
        return _TableWriter(make_console(codecs.getwriter("utf-8")(out)))
    return get_format(format_).writer(printable_file(out))  # type: ignore[arg-type]


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


def _to_directory(root: Path, rotate: float, since: float) -> Iterator[Writer]:
    from dltools.observations.recording.recorder import Recorder

    with closing(Recorder(root, rotate_s=rotate, since_s=since)) as made:
        if made.recovered:
            print_message(f"{root}: recovered the rows of {made.recovered} killed recorder(s)")
        yield made


class _Replacing:
    """A file that each sample replaces completely, as the textfile collector expects it."""

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

    def __init__(
        self, console: Console, draw: Callable[[RenderableType], None] | None = None
    ) -> None:
        """`draw` draws over the drawing before; without it, a table follows the one before."""
        self._console, self._draw = console, draw
        self._hosts = ObservedHosts()

    def write(self, table: pa.Table) -> None:
        from dltools.cli.probe.tables import containers_table, live_view

        rows, console = table.to_pylist(), self._console
        self._hosts.take(rows)
        if self._draw is not None:
            self._draw(live_view(self._hosts, *console.size))
            return
        console.print(containers_table(self._hosts, console.width))
        if not any(row["kind"] in ("container", "progress") for row in rows):
            print_message("no containers are running, or the filters match none")

    def close(self) -> None:
        pass
