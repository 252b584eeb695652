"""The inputs of dl-report as runs: recordings, plans, results, and the tables of jobs that dl-sim
and dl-report print.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dltools import bounded_reading
from dltools.actions.plan_lines import load_plans
from dltools.cli.exits import print_message
from dltools.cli.input_streams import open_input
from dltools.errors import DataError, reading
from dltools.input_kinds import Content, content_of
from dltools.observations.container_records import RECORD_COLUMNS
from dltools.observations.outcomes import JobResult
from dltools.plan.policy import registry
from dltools.report.observed_run import observed_run
from dltools.report.timelines import Run, add_plans, add_results
from dltools.text import writable

if TYPE_CHECKING:
    import pyarrow as pa

_Part = TypeVar("_Part")

_FIELDS = tuple(field.name for field in dataclasses.fields(JobResult))
_WHOLE_NUMBERS = ("migrations", "exit_code")
_TEXTS = ("name", "node", "user")
_LONGEST_S = 1e12

_TABLES = (Content.JOBS, Content.SUMMARY)


@dataclass(frozen=True, slots=True)
class _Input:
    """An input: NAME of NAME=FILE ("" without one), FILE, its name for messages, and what it holds.
    A directory has no data."""

    label: str
    file: str
    shown: str
    data: bytes = b""
    content: Content = Content.PARQUET

    @property
    def is_recording(self) -> bool:
        """Whether it is to hold observations."""
        return self.content not in (Content.PLANS, Content.RESULTS, *_TABLES)

    def tables(self) -> Iterator[pa.Table]:
        """Yield its observations, in order of time."""
        from dltools.observations.formats.registry import read
        from dltools.observations.recording.directory import RecordingDirectory

        if self.is_directory:
            return iter([RecordingDirectory(Path(self.file)).read()])
        return _until_damage(read(io.BytesIO(self.data), self.shown, RECORD_COLUMNS).tables)

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory of recordings."""
        return self.file != "-" and Path(self.file).is_dir()


def load_runs(arguments: Iterable[str]) -> list[Run]:
    """Return the runs of all inputs, each with a name of its own; recordings that are given one
    name are one run. An empty file after a run is the results of a run that changed nothing. Raises
    `DataError`."""
    inputs = [_read(*_split(argument)) for argument in arguments]
    runs: list[Run] = []
    additions: list[tuple[_Input, Run | None]] = []
    named: set[str] = set()
    for file in inputs:
        if runs and not file.data and not file.is_directory:
            print_message(f"{file.shown}: empty: no plans and no results")
        elif file.content in _TABLES:
            runs += _runs_of_jobs(file)
        elif not file.is_recording:
            additions.append((file, runs[-1] if runs else None))
        elif file.label not in named:
            parts = [other for other in inputs if other.is_recording and other.label == file.label]
            runs.append(_recorded(parts if file.label else [file]))
            named |= {file.label} - {""}
    if not runs:
        raise DataError(
            f"{inputs[0].shown}: plans and results show no jobs: give the recording too"
        )
    _make_names_unique(runs)
    for addition, before in additions:
        _add(addition, before, runs)
    return runs


def _read(label: str, file: str) -> _Input:
    if file != "-" and Path(file).is_dir():
        return _Input(label, file, file)
    stream, shown = open_input(file)
    data = bounded_reading.read_whole(stream, shown)
    return _Input(label, file, shown, data, content_of(data))


def _recorded(parts: Sequence[_Input]) -> Run:
    """Return the run that a recording shows, or several of several hosts together, by time."""
    from dltools.observations.table import concat

    first = parts[0]
    path = Path(first.file)
    stem = path.name or first.file if first.is_directory else path.stem
    name = first.shown if first.file == "-" else writable(stem)
    tables = first.tables()
    if len(parts) > 1:
        tables = iter([concat(table for part in parts for table in part.tables())])
    run = observed_run(tables, first.label or name, first.shown)
    if not run.is_sampled:
        print_message(
            f"{first.shown}: only progress is known: the report lacks the CPU use and the end of "
            "its jobs"
        )
    return run


def _split(argument: str) -> tuple[str, str]:
    """Return NAME and FILE of NAME=FILE; NAME is "" where a file has that very name."""
    label, equals, file = argument.partition("=")
    if equals and label and not Path(argument).exists():
        return writable(label), file
    return "", argument


def _runs_of_jobs(given: _Input) -> list[Run]:
    """Return the runs of a table of jobs."""
    if given.content is Content.SUMMARY:
        raise DataError(
            f"{given.shown}: one row per policy is too little for a report: use dl-sim --jobs"
        )
    return read_job_table(given.data, given.shown, given.label)


def _make_names_unique(runs: Sequence[Run]) -> None:
    taken: set[str] = set()
    for run in runs:
        label, number = run.label, 2
        while run.label in taken:
            run.label, number = f"{label} ({number})", number + 1
        taken.add(run.label)


def _add(given: _Input, before: Run | None, runs: Sequence[Run]) -> None:
    """Add plans or results to the run of their name, else to the one before them."""
    named = [run for run in runs if run.label == given.label]
    run = named[0] if named else before or runs[0]
    if given.content is Content.RESULTS:
        add_results(run, read_rows(given.data, given.shown))
        return
    from dltools.cli.policies import allowed_plugins

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


_LONGEST_SEED = 20
"""Digits of a seed that is named."""


def read_job_table(data: bytes, name: str, label: str) -> list[Run]:
    """Return a run per policy of a table of jobs, with a repeat per seed. Raises `DataError`."""
    policies: dict[str, dict[str, list[JobResult]]] = {}
    for number, row in enumerate(read_rows(data, name), 1):
        where = f"{name}: row {number}"
        policy = writable(row.get("policy") or row.get("run") or "")
        seed = str(row.get("seed") or 0)
        policies.setdefault(policy, {}).setdefault(seed, []).append(_job(row, where))
    if not policies:
        raise DataError(f"{name}: the table has no jobs")
    several = len(policies) > 1
    return [
        Run(
            (f"{label}/{policy}" if several else label) if label else policy,
            list(repeats.values()),
            seeds=[
                int(repeat)
                for repeat in repeats
                if repeat.isdecimal() and len(repeat) < _LONGEST_SEED
            ],
        )
        for policy, repeats in policies.items()
    ]


def read_rows(data: bytes, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of CSV or JSON Lines. Raises `DataError`."""
    with reading(name):
        text = data.decode()
    if text.lstrip("\ufeff \n\r\t").startswith("{"):
        yield from _json_rows(text, name)
        return
    with reading(name):
        yield from csv.DictReader(io.StringIO(text))


def _json_rows(text: str, name: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        with reading(f"{name}: line {number}"):
            record = json.loads(line)
        if not isinstance(record, dict):
            raise DataError(f"{name}: line {number}: not an object")
        yield record


def _job(row: Mapping[str, Any], where: str) -> JobResult:
    values = {
        key: _value(key, row[key], where) for key in _FIELDS if row.get(key) not in (None, "")
    }
    if lacking := [key for key in ("name", "arrival") if key not in values]:
        raise DataError(f"{where}: no {lacking[0]}")
    return JobResult(**{"node": "", **values})


def _value(key: str, value: Any, where: str) -> Any:
    if key in _TEXTS:
        return writable(value)
    with reading(f"{where}: {key}"):
        number = int(value) if key in _WHOLE_NUMBERS else float(value)
    if not abs(number) <= _LONGEST_S:
        raise DataError(f"{where}: {key} is not a number of seconds or jobs: {str(value)[:30]}")
    return number
