"""Progress points in what a job prints: a pipeline, each step a module, and a file a family.

1. `lines` cuts the bytes of a log into lines, and a bar that is redrawn into its drawings.
2. `prefix` takes off what an engine, a launcher or a rank put before a line.
3. `match` asks the families of formats for the points in it, then the generic reader, `named`.
4. `rank` follows one of several processes that print the same metric.
5. `repeats` drops points that were there before.
6. `confirm` keeps a doubtful point until a second one like it comes.

`length` adds how long the job says that it will train.

`pipeline` runs these steps for a log: `PointReader` takes bytes, and gives points. `shapes`
remembers what lines have in common that differ in their digits alone, `base` says what a family
must do, `pattern` reads by a user's expression instead of `match`. `source` is the interface of all
that progress is read from: logs, files and endpoints.
"""

from __future__ import annotations

from dltools.probe.progress.base import Extractor, Family, Point
from dltools.probe.progress.match import FAMILIES, Automatic
from dltools.probe.progress.pattern import Pattern
from dltools.probe.progress.pipeline import PointReader

__all__ = ["FAMILIES", "Automatic", "Extractor", "Family", "Pattern", "Point", "PointReader"]
