"""What dl-report was given, as runs: recordings, plans, results, job tables; known by content."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dltools import inputs
from dltools.cli.exits import print_message
from dltools.cli.input_streams import open_input
from dltools.cli.report.job_tables import read_job_table, read_rows
from dltools.errors import DataError
from dltools.report.run import Run
from dltools.text import writable

if TYPE_CHECKING:
    import typer

_Part = TypeVar("_Part")


def load_runs(arguments: Sequence[str], context: typer.Context) -> list[Run]:
    """Return the runs of all inputs. Raises `DataError`."""
    runs: list[Run] = []
    later: list[tuple[str, Run | None, bytes, str]] = []
    for given in arguments:
        label, name = _named(given)
        if name != "-" and Path(name).is_dir():
            runs.append(_recorded(None, name, label or writable(Path(name).name or name)))
            continue
        stream, shown = open_input(name, context)
        data = inputs.read_whole(stream, shown)
        kind = _kind(data)
        if kind == "jobs":
            runs += read_job_table(data, shown, label)
        elif kind == "summary":
            raise DataError(f"{shown}: a row per policy; dl-sim --jobs prints what a report needs")
        elif kind in ("plan", "result"):
            later.append((label, runs[-1] if runs else None, data, shown))
        else:
            runs.append(_recorded(data, shown, label or _stem(name)))
    if not runs:
        raise DataError(f"{later[0][3]}: plans and results show no jobs: give the recording too")
    _give_each_a_name(runs)
    for label, before, data, shown in later:
        named = [run for run in runs if run.label == label]
        _add(named[0] if named else before or runs[0], data, shown)
    return runs


def _named(given: str) -> tuple[str, str]:
    """Return the name that NAME=FILE gives, and the file; a file of that very name has none."""
    label, equals, name = given.partition("=")
    if equals and label and not Path(given).exists():
        return writable(label), name
    return "", given


def _stem(name: str) -> str:
    return "standard input" if name == "-" else writable(Path(name).stem)


def _give_each_a_name(runs: Sequence[Run]) -> None:
    taken: set[str] = set()
    for run in runs:
        label, number = run.label, 2
        while run.label in taken:
            run.label, number = f"{label} ({number})", number + 1
        taken.add(run.label)


def _kind(data: bytes) -> str:
    """Tell what bytes are: "jobs", "summary", "plan", "result" or "" for observations."""
    line = data.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    if line.startswith((b"policy,", b"run,")):
        return "jobs" if b",name," in line else "summary"
    if not line.startswith(b"{"):
        return ""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(record, dict):
        return ""
    if record.get("kind") in ("plan", "result"):
        return str(record["kind"])
    if "policy" in record or "run" in record:
        return "jobs" if "name" in record else "summary"
    return ""


def _recorded(data: bytes | None, name: str, label: str) -> Run:
    from dltools.observations.formats.reading import read
    from dltools.observations.recording.directory import RecordingDirectory
    from dltools.observations.table import concat
    from dltools.report.observed import observed_run

    table = (RecordingDirectory(Path(name)).read() if data is None
             else concat(_until_damage(read(io.BytesIO(data), name).tables)))  # fmt: skip
    found = observed_run(table, label, name)
    if not found.is_sampled:
        print_message(
            f"{name}: only progress is known: the report lacks the CPU use and the end of its jobs"
        )
    return found


def _add(run: Run, data: bytes, name: str) -> None:
    from dltools.report.decided import add_plans, add_results

    if _kind(data) != "plan":
        add_results(run, read_rows(data, name))
        return
    from dltools.cli.policies import allowed_plugins
    from dltools.plan.policy import registry
    from dltools.plan.reading import load_plans

    plans = load_plans(data.splitlines(keepends=True), name, print_message)
    add_plans(run, _until_damage(plans), registry.policies(allowed_plugins()))


def _until_damage(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield what is whole of a recording or of plans that were cut off, and say so. Raises
    `DataError` where nothing is."""
    got = False
    try:
        for part in parts:
            got = True
            yield part
    except DataError as error:
        if not got:
            raise
        print_message(f"{error}; what came before it is reported")
