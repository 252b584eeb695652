"""The inputs of dl-report as runs: recordings, plans, results, and tables of jobs."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dltools import inputs
from dltools.cli.exits import print_message
from dltools.cli.input_streams import open_input
from dltools.cli.report.content import Content, content_of
from dltools.cli.report.job_tables import read_job_table, read_rows
from dltools.errors import DataError
from dltools.report.run import Run
from dltools.text import writable

if TYPE_CHECKING:
    import pyarrow as pa
    import typer

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class _Input:
    """An input: NAME of NAME=FILE ("" without one), FILE, and its name for messages."""

    label: str
    file: str
    shown: str
    data: bytes


@dataclass(frozen=True, slots=True)
class _Addition:
    """Plans or results, and the run of the input before them."""

    input: _Input
    content: Content
    before: Run | None


def load_runs(arguments: Sequence[str], context: typer.Context) -> list[Run]:
    """Return the runs of all inputs, each with a name of its own. Raises `DataError`."""
    runs: list[Run] = []
    additions: list[_Addition] = []
    for argument in arguments:
        label, file = _split(argument)
        if file != "-" and Path(file).is_dir():
            runs.append(_run_of_directory(file, label))
            continue
        stream, shown = open_input(file, context)
        given = _Input(label, file, shown, inputs.read_whole(stream, shown))
        content = content_of(given.data)
        if content in (Content.PLANS, Content.RESULTS):
            additions.append(_Addition(given, content, runs[-1] if runs else None))
        else:
            runs += _runs(given, content)
    if not runs:
        shown = additions[0].input.shown
        raise DataError(f"{shown}: plans and results show no jobs: give the recording too")
    _make_names_unique(runs)
    for addition in additions:
        _add(addition, runs)
    return runs


def _split(argument: str) -> tuple[str, str]:
    """Return NAME and FILE of NAME=FILE; NAME is "" where a file has that very name."""
    label, equals, file = argument.partition("=")
    if equals and label and not Path(argument).exists():
        return writable(label), file
    return "", argument


def _runs(given: _Input, content: Content) -> list[Run]:
    """Return the runs of a recording or of a table of jobs."""
    if content is Content.JOBS:
        return read_job_table(given.data, given.shown, given.label)
    if content is Content.SUMMARY:
        raise DataError(
            f"{given.shown}: a row per policy is too little for a report: use dl-sim --jobs"
        )
    from dltools.observations.formats.reading import read
    from dltools.observations.table import concat

    table = concat(_until_damage(read(io.BytesIO(given.data), given.shown).tables))
    stem = "standard input" if given.file == "-" else writable(Path(given.file).stem)
    return [_observed(table, given.shown, given.label or stem)]


def _run_of_directory(root: str, label: str) -> Run:
    from dltools.observations.recording.directory import RecordingDirectory

    table = RecordingDirectory(Path(root)).read()
    return _observed(table, root, label or writable(Path(root).name or root))


def _observed(table: pa.Table, shown: str, label: str) -> Run:
    from dltools.report.observed import observed_run

    run = observed_run(table, label, shown)
    if not run.is_sampled:
        print_message(
            f"{shown}: only progress is known: the report lacks the CPU use and the end of its jobs"
        )
    return run


def _make_names_unique(runs: Sequence[Run]) -> None:
    taken: set[str] = set()
    for run in runs:
        label, number = run.label, 2
        while run.label in taken:
            run.label, number = f"{label} ({number})", number + 1
        taken.add(run.label)


def _add(addition: _Addition, runs: Sequence[Run]) -> None:
    """Add plans or results to the run of their name, else to the one before them."""
    given = addition.input
    named = [run for run in runs if run.label == given.label]
    run = named[0] if named else addition.before or runs[0]
    from dltools.report.decided import add_plans, add_results

    if addition.content is Content.RESULTS:
        add_results(run, read_rows(given.data, given.shown))
        return
    from dltools.cli.policies import allowed_plugins
    from dltools.plan.policy import registry
    from dltools.plan.reading import load_plans

    plans = load_plans(given.data.splitlines(keepends=True), given.shown, print_message)
    add_plans(run, _until_damage(plans), registry.policies(allowed_plugins()))


def _until_damage(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield the parts before a damaged one, and warn of it. Raises `DataError` where the first part
    is damaged."""
    any_read = False
    try:
        for part in parts:
            any_read = True
            yield part
    except DataError as error:
        if not any_read:
            raise
        print_message(f"{error}; what came before it is reported")
