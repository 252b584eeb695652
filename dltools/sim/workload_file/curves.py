"""Learning curves in a workload file: by a formula, as a table of points, or from a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dltools.errors import DataError
from dltools.sim.curve import KINDS, LearningCurve
from dltools.sim.workload_file.values import Table

Loader = Callable[[str], str]
"""Returns the text of a file that a workload names; may raise `DataError`."""

Pairs = list[tuple[float, float]]
"""(Share of the work, value)."""


def read_curve(table: Table, load: Loader) -> LearningCurve:
    """Return the curve of a job's table `curve`. Raises `DataError`."""
    pairs = _pairs(table, load)
    found = Table(f"{table.where}: curve", table.without("table", "file", "x", "y").data)
    kind = {"kind": "points"} if "file" in table.data else {}
    curve = LearningCurve(**{**kind, **found.fields(LearningCurve)}, table=tuple(sorted(pairs)))
    if curve.kind not in KINDS:
        raise table.error(f"a curve's kind must be one of {', '.join(KINDS)}, not {curve.kind!r}")
    if curve.kind == "points" and not pairs:
        raise table.error("a curve of points needs a table or a file")
    return curve


def _pairs(table: Table, load: Loader) -> Pairs:
    points, file = table.data.get("table", ()), table.data.get("file")
    if file is None:
        if "x" in table.data or "y" in table.data:
            raise table.error("x and y are columns of a curve's file: set file, too")
        return _points(points, table)
    if points:
        raise table.error("a curve has a table or a file, not both")
    if not isinstance(file, str):
        raise table.error(f"a curve's file must be a name, not {file!r}")
    where = f"{table.where}: {file}"
    return _from_csv(load(file), where, table.data.get("x"), table.data.get("y"))


def _points(points: Any, table: Table) -> Pairs:
    try:
        return [(float(share), float(value)) for share, value in points]
    except (TypeError, ValueError, OverflowError) as error:
        raise table.error("a curve's table must be pairs of [share of the work, value]") from error


def _from_csv(text: str, where: str, x: Any, y: Any) -> Pairs:
    """Return the pairs of a CSV file: column x, by default the first, over its largest value, and
    column y, by default metric, value or the second."""
    rows = csv.DictReader(io.StringIO(text))
    try:
        fields = list(rows.fieldnames or ())
        usual = [field for field in ("metric", "value") if field in fields] or fields[1:]
        x, y = _column(x, fields, fields, where), _column(y, usual, fields, where)
        found = [(float(row[x]), float(row[y])) for row in rows]
    except (TypeError, ValueError, csv.Error) as error:
        raise DataError(f"{where}: {error}") from error
    found = [(u, v) for u, v in found if math.isfinite(u) and math.isfinite(v)]
    most = max((u for u, _ in found), default=0.0)
    if most <= 0:
        raise DataError(f"{where}: column {x} has no number above 0")
    return [(u / most, v) for u, v in found if u >= 0]


def _column(named: Any, usual: Sequence[str], fields: Sequence[str], where: str) -> str:
    """Return the name of a column: the one that is named, else the first usual one."""
    column = named or next(iter(usual), "")
    if column not in fields:
        raise DataError(f"{where}: no column {column!r}; it has {', '.join(fields)}")
    return str(column)


def curve_table(table: Mapping[str, Any], where: str) -> Table:
    """Return a job's table `curve`. Raises `DataError` where it is no table."""
    curve = table.get("curve", {})
    if not isinstance(curve, dict):
        raise DataError(f'{where}: curve must be a table, such as {{ kind = "power", end = 0.2 }}')
    return Table(where, curve)
