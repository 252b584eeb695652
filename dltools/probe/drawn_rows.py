"""Rows of drawings that were read together, column by column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from dltools.notation.times import to_micros
from dltools.observations.schema import arrow_schema
from dltools.observations.table import Row
from dltools.probe.point_times import PointTime
from dltools.probe.progress.drawn import Drawings
from dltools.probe.rows import progress_row

if TYPE_CHECKING:
    import pyarrow as pa


class DrawnRows:
    """The rows of kind `progress` of one container's drawings; all times are known."""

    def __init__(
        self, host: str, id_: str, name: str, times: Sequence[PointTime], drawings: Drawings
    ) -> None:
        """`times` has one time for each drawing."""
        self.host, self.id, self.name = host, id_, name
        self.times, self.drawings = times, drawings

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.times) * len(self.drawings.metrics) - self.drawings.missing

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows."""
        for at, points in zip(self.times, self.drawings.points(), strict=True):
            for point in points:
                yield progress_row(at.time, self.host, self.id, self.name, point, at.gap)

    def only(self, metrics: Collection[str]) -> DrawnRows:
        """Return the rows of some metrics."""
        drawings = self.drawings
        kept = [at for at, (metric, _) in enumerate(drawings.metrics) if metric in metrics]
        drawings = drawings._replace(
            metrics=tuple(drawings.metrics[at] for at in kept),
            values=[drawings.values[at] for at in kept],
            missing=sum(drawings.values[at].count(None) for at in kept) if drawings.missing else 0,
        )
        return DrawnRows(self.host, self.id, self.name, self.times, drawings)

    def table(self) -> pa.Table:
        """Return the rows as a table in the one schema."""
        import pyarrow as pa

        drawings, many = self.drawings, len(self.drawings.metrics)
        count = len(self.times) * many  # rows, those without a value too
        gaps = [at.gap for at in self.times]
        columns: dict[str, Any] = {
            "time": _each(_micros(self.times), many),
            "value": list(chain.from_iterable(zip(*drawings.values, strict=True))),
            "step": _each(drawings.steps, many),
        }
        if drawings.epoch is not None:
            columns["epoch"] = [drawings.epoch] * count
        same = pa.array([0] * count, pa.int32())
        named = {
            word: pa.DictionaryArray.from_arrays(same, [text])
            for word, text in (
                ("host", self.host),
                ("kind", "progress"),
                ("container_id", self.id),
                ("container_name", self.name),
                ("source", drawings.source),
            )
        }
        for column, at in (("metric", 0), ("metric_original", 1)):
            texts = [names[at] for names in drawings.metrics]
            known = list(dict.fromkeys(texts))
            indices = [known.index(texts[code]) for code in range(many)] * len(self.times)
            named[column] = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), known)
        if any(gaps):
            named["gap"] = pa.array(_each(gaps, many)).dictionary_encode()
        made = [
            named[field.name]
            if field.name in named
            else pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in arrow_schema()
        ]
        table = pa.table(made, schema=arrow_schema())
        return table if len(self) == count else table.filter(table["value"].is_valid())


def _micros(times: Sequence[PointTime]) -> list[int]:
    """Return times in microseconds; many in a row are the same object."""
    found: list[int] = []
    last, micros = None, 0
    for at in times:
        if at is not last:
            last, micros = at, to_micros(at.time)
        found.append(micros)
    return found


def _each(values: Sequence[Any], times: int) -> list[Any]:
    """Return each value so many times in a row."""
    if times == 1:
        return list(values)
    return list(chain.from_iterable(repeat(value, times) for value in values))
