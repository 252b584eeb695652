"""Finds progress points in what a job prints, by a pipeline with a module for each step.

1. `clean_lines` cuts the bytes of a log into lines, and a redrawn bar into its drawings.
2. `prefix` removes what an engine, a launcher or a rank has put before a line.
3. `match` asks the families of formats for the points in a line, then the generic reader, `named`,
   which names numbers by what stands beside them (`tokens`) or nearest (`nearest`).
4. `rank` selects one of several processes that print the same metric.
5. `repeats_and_redraws` drops points that the log had before.
6. `confirm` holds a doubtful point back until a similar one follows.
7. `repeats_and_redraws` holds the points of a bar back, and returns those of the last drawing of a
   step.

`length` adds how long the job says that it will train.

`pipeline` runs these steps for a log: `PointReader` takes bytes, and returns points. `line_shapes`
caches what is known of lines that differ only in their digits, `base` says what a family must do,
`user_patterns` reads by a user's expression instead of `match`. `source` is the interface of
everything that progress is read from: logs, files and endpoints.
"""

from __future__ import annotations

from dltools.probe.progress.base import Extractor, Family, Point
from dltools.probe.progress.match import FAMILIES, Automatic
from dltools.probe.progress.pipeline import PointReader
from dltools.probe.progress.user_patterns import Pattern

__all__ = ["FAMILIES", "Automatic", "Extractor", "Family", "Pattern", "Point", "PointReader"]
