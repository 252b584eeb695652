"""Tables of jobs, as dl-sim --jobs and dl-report print them, read as runs."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from dltools.errors import DataError
from dltools.observations.outcomes import JobResult
from dltools.report.timelines import Run
from dltools.text import writable

_FIELDS = tuple(field.name for field in dataclasses.fields(JobResult))
_WHOLE_NUMBERS = ("migrations", "exit_code")
_TEXTS = ("name", "node")
_LONGEST_S = 1e12


def read_job_table(data: bytes, name: str, label: str) -> list[Run]:
    """Return a run per policy of a table of jobs, with a repeat per seed. Raises `DataError`."""
    found: dict[str, dict[str, list[JobResult]]] = {}
    for number, row in enumerate(read_rows(data, name), 1):
        where = f"{name}: row {number}"
        policy = writable(row.get("policy") or row.get("run") or "")
        seed = str(row.get("seed") or 0)
        found.setdefault(policy, {}).setdefault(seed, []).append(_job(row, where))
    if not found:
        raise DataError(f"{name}: a table of jobs without jobs")
    several = len(found) > 1
    return [
        Run((f"{label}/{policy}" if several else label) if label else policy, list(seeds.values()))
        for policy, seeds in found.items()
    ]


def read_rows(data: bytes, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of CSV or JSON Lines. Raises `DataError`."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: {error}") from error
    if text.lstrip("\ufeff \n\r\t").startswith("{"):
        yield from _json_rows(text, name)
        return
    try:
        yield from csv.DictReader(io.StringIO(text))
    except csv.Error as error:
        raise DataError(f"{name}: {error}") from error


def _json_rows(text: str, name: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}: line {number}: {error}") from error
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
    try:
        if key in _TEXTS:
            return writable(value)
        number = int(value) if key in _WHOLE_NUMBERS else float(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{where}: {key}: {error}") from error
    if not abs(number) <= _LONGEST_S:
        raise DataError(f"{where}: {key} is no number of seconds or jobs: {str(value)[:30]}")
    return number
