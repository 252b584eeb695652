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
from dltools.report.run import Run
from dltools.text import writable

_FIELDS = tuple(field.name for field in dataclasses.fields(JobResult))
_WHOLE_NUMBERS = ("migrations", "exit_code")
_TEXTS = ("name", "node")
_LONGEST_S = 1e12


def read_job_table(data: bytes, name: str, label: str) -> list[Run]:
    """Return a run per policy of a job table, with a repeat per seed."""
    found: dict[str, dict[str, list[JobResult]]] = {}
    for number, row in enumerate(read_rows(data, name), 1):
        where = f"{name}: row {number}"
        policy = writable(row.get("policy") or row.get("run") or "")
        seed = str(row.get("seed") or 0)
        found.setdefault(policy, {}).setdefault(seed, []).append(_job(row, where))
    if not found:
        raise DataError(f"{name}: a job table without jobs")
    several = len(found) > 1
    return [
        Run((f"{label}/{policy}" if several else label) if label else policy,
            list(seeds.values()))
        for policy, seeds in found.items()
    ]  # fmt: skip


def read_rows(data: bytes, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of CSV or JSON Lines. Raises `DataError`."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: {error}") from error
    if not text.lstrip("\ufeff \n\r\t").startswith("{"):
        try:
            yield from csv.DictReader(io.StringIO(text))
        except csv.Error as error:
            raise DataError(f"{name}: {error}") from error
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{name}: line {number}: {error}") from error
            if not isinstance(record, dict):
                raise DataError(f"{name}: line {number}: not an object")
            yield record


def _job(row: Mapping[str, Any], where: str) -> JobResult:
    values: dict[str, Any] = {}
    for key in _FIELDS:
        value = row.get(key)
        if value in (None, ""):
            continue
        try:
            values[key] = (writable(value) if key in _TEXTS else
                           int(value) if key in _WHOLE_NUMBERS else float(value))  # fmt: skip
        except (ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{where}: {key}: {error}") from error
        if key not in _TEXTS and not abs(values[key]) <= _LONGEST_S:
            raise DataError(f"{where}: {key} is no number of seconds or jobs: {str(value)[:30]}")
    if lacking := [key for key in ("name", "arrival") if key not in values]:
        raise DataError(f"{where}: no {lacking[0]}")
    return JobResult(**{"node": "", **values})
