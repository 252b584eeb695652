"""dl-probe: measure the containers of one Docker host."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from dltools.cli import options
from dltools.cli.exits import complain, guarded, run
from dltools.cli.options import Verbose, Version, seconds

if TYPE_CHECKING:
    import pyarrow as pa

    from dltools.probe.sampler import Sampler
    from dltools.streams import Row, Writer


class Output(StrEnum):
    """What --format may be."""

    AUTO = "auto"
    TABLE = "table"
    PARQUET = "parquet"
    ARROW = "arrow"
    JSONL = "jsonl"
    CSV = "csv"
    PROM = "prom"


@guarded
def probe(
    interval: Annotated[
        float | None,
        typer.Option(
            "-i",
            "--interval",
            parser=seconds,
            metavar="TIME",
            help="Sample again and again, TIME apart. Without it: once.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", min=1, help="Stop after this many samples; needs -i."),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(parser=seconds, metavar="TIME", help="Stop after this long; needs -i."),
    ] = None,
    since: Annotated[
        float,
        typer.Option(
            parser=seconds,
            metavar="TIME",
            envvar="DLTOOLS_SINCE",
            help="How much of the log history to read at first.",
        ),
    ] = "10m",  # type: ignore[assignment]
    window: Annotated[
        float,
        typer.Option(
            parser=seconds,
            metavar="TIME",
            envvar="DLTOOLS_WINDOW",
            help="Take two counter samples this far apart, so that rates are of now and "
            "not of the container's whole life. 0: one sample.",
        ),
    ] = "0",  # type: ignore[assignment]
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=VALUE]", help="Only containers with this label. Repeatable."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REGEX",
            help="Only containers whose name matches, as docker ps "
            "--filter name has it. Repeatable: any of them.",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            envvar="DLTOOLS_PATTERN",
            help="Find progress in logs by the named groups of REGEX, such as "
            "'val=(?P<val_loss>[0-9.]+)'. The label dltools.pattern wins.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to FILE: whole or not at all, but for a stream.",
        ),
    ] = None,
    format_: Annotated[
        Output,
        typer.Option(
            "--format",
            envvar="DLTOOLS_FORMAT",
            help="auto: a table on a terminal, else Parquet, or Arrow for a stream.",
        ),
    ] = Output.AUTO,
    verbose: Verbose = False,
    version: Version = False,  # noqa: ARG001
) -> None:
    """Measure the running containers of a Docker host: CPU, memory, limits, progress.

    Prints observations, a table with a row per node, container, progress point and event, in
    Parquet; with -i an Arrow stream with a batch per sample. dl-plan reads both.
    """  # fmt: skip
    if interval is None and (count is not None or duration is not None):
        raise typer.BadParameter("--count and --duration need --interval")
    if interval is not None and interval <= 0:
        raise typer.BadParameter("--interval must be more than 0")
    chosen = _format(format_, output, streaming=interval is not None)

    from dltools.probe.engine import Engine
    from dltools.probe.progress import Pattern
    from dltools.probe.sampler import Options, Sampler

    filters = {key: value for key, value in (("label", label), ("name", name)) if value}
    regex = Pattern(pattern) if pattern else None
    sampler = Sampler(Engine(), Options(filters, since, regex))
    with _writer(chosen, output, streaming=interval is not None) as writer:
        if interval is None:
            _once(sampler, writer, window, verbose)
        else:
            _stream(sampler, writer, interval, count, duration, verbose)


def _once(sampler: Sampler, writer: Writer, window: float, verbose: bool) -> None:
    earlier: list[Row] = []
    if window > 0:
        earlier = sampler.counters()
        time.sleep(window)
    _write(writer, earlier + sampler.sample(), verbose)


def _stream(
    sampler: Sampler,
    writer: Writer,
    interval: float,
    count: int | None,
    duration: float | None,
    verbose: bool,
) -> None:
    """Sample at fixed times: a slow sample delays none but itself."""
    sampler.follow()
    begun = time.monotonic()
    taken = 0
    while True:
        _write(writer, sampler.sample(), verbose)
        taken += 1
        elapsed = time.monotonic() - begun
        following = (elapsed // interval + 1) * interval
        if count is not None and taken >= count:
            return
        if duration is not None and following > duration:
            return
        time.sleep(max(0.0, begun + following - time.monotonic()))


def _write(writer: Writer, rows: list[Row], verbose: bool) -> None:
    from dltools.streams import to_table

    if verbose:
        kinds = [row["kind"] for row in rows]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        complain(f"sampled {counts}")
        for row in rows:
            if row.get("gap"):
                complain(f"{row.get('container_name') or row['host']}: {row['gap']}")
    writer.write(to_table(rows))


# Output


def _format(wanted: Output, output: Path | None, *, streaming: bool) -> Output:
    terminal = output is None and sys.stdout.isatty()
    if wanted is not Output.AUTO:
        if terminal and wanted in (Output.PARQUET, Output.ARROW):
            raise typer.BadParameter(
                f"{wanted} is binary and standard output is a terminal; use -o FILE or a pipe"
            )
        return wanted
    if terminal:
        return Output.TABLE
    return Output.ARROW if streaming else Output.PARQUET


@contextmanager
def _writer(format_: Output, output: Path | None, *, streaming: bool) -> Iterator[Writer]:
    """Open the output; it is complete when the block ends, however it ends."""
    from dltools.files import atomic_file
    from dltools.streams import Format, writer

    def make(out: BinaryIO) -> Writer:
        return _TableWriter(out) if format_ is Output.TABLE else writer(Format(format_.value), out)

    if output is None:
        made = make(sys.stdout.buffer)
        try:
            yield made
        except BrokenPipeError:
            raise
        except BaseException:
            made.close()
            raise
        made.close()
    elif streaming:
        from dltools.errors import OutputError

        try:
            file = output.open("wb")
        except OSError as error:
            raise OutputError(f"cannot create {output}: {error.strerror}") from error
        with file:
            made = make(file)
            try:
                yield made
            finally:
                made.close()
    else:
        with atomic_file(output) as staged:
            made = make(staged)  # type: ignore[arg-type]
            yield made
            made.close()


class _TableWriter:
    """A table for people: a row per container, with rates since the sample before."""

    def __init__(self, out: BinaryIO) -> None:
        import io

        self._out = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
        self._earlier: dict[str, Row] = {}

    def write(self, table: pa.Table) -> None:
        from dltools.cli.tables import containers_table

        console = options.console(self._out)
        rows = table.to_pylist()
        console.print(containers_table(rows, self._earlier))
        if not any(row["kind"] == "container" for row in rows):
            complain("no containers are running, or none that the filters let through")

    def close(self) -> None:
        self._out.flush()
        self._out.detach()


app = options.app(probe)


def main() -> None:
    """Run dl-probe."""
    run(app)
