"""Tables: a row of names, then rows of numbers, as fastai, skorch and Chainer print them.

`epoch  train_loss  valid_loss  time`, then `0  6.45  5.97  02:40`. Columns stand between blanks,
tabs, commas or bars (`| epoch | loss |`). Rows may begin with a phase instead of a counter:
`loss (eV)  accuracy`, then `Train  0.51  0.82`. Ultralytics YOLO puts a bar behind its rows; its
validation counts in the row `all`. A box of names and values is one row, as Stable-Baselines3's:
`| ep_rew_mean | 21.5 |`, `| total_timesteps | 4096 |`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import ClassVar

from dltools.observations.metric_names import normal_name
from dltools.probe.progress.base import Point, Regex, clock, number, report, whole
from dltools.probe.progress.families.jsonlines import points_of
from dltools.probe.progress.tokens import COUNTERS, NameKind, name_kind, statistics_of, step_rank

_BARS = Regex(r"\s*[|\u2502\u2503]\s*")
_BLANKS_FORM = r"\s{2,}|\t"
_BLANKS = Regex(_BLANKS_FORM)
_TWO_WORDS = Regex(
    r"(?<!\S)(train(?:ing)?|val(?:id(?:ation)?)?|test|eval) (?=[A-Za-z])", re.IGNORECASE
)
"""What begins a name of two words, where names stand between single blanks."""

_COLUMNS = Regex(
    rf"{_BLANKS_FORM}|(?<=\S) (?=(?:train|val|valid|test)\w{{0,7}} [a-z])", re.IGNORECASE
)
"""What stands between names: blanks, or one before a name that begins with a phase."""

_NUMBER_FORM = r"[-+]?(?:\d++(?:,\d{3})*(?:\.\d*)?(?:[eE][-+]?\d++)?|\.\d++|nan|inf)(?:/\d++|%)?"
_NUMBER = Regex(_NUMBER_FORM, re.IGNORECASE)
_COUNTER_FIRST = Regex(
    rf"[\s|\u2502\u2503*`\[]*{_NUMBER_FORM}(?=[\s,|\u2502\u2503*`\]]|$)", re.IGNORECASE
)
"""How a row begins whose first column counts."""

_EDGE = Regex(r", |[|\u2502\u2503*`]")
"""What stands between words of a row."""

_UNIT = Regex(r"(?<!^Train)(?<!^Valid)(?<!^Val)(?<!^Test)\s*\([^()]*\)$", re.IGNORECASE)
"""What stands in brackets behind a name. Behind a phase it is the name: `Valid(MRR)`."""

_PHASE = Regex(r"\s*(all|(?:train|val(?:id)?|test|dev)(?:ing|ation)?(?:set)?)\s{2,}", re.IGNORECASE)
_LOGGED = Regex(
    r"\W{0,2}(?:\d[^|]*?\bINFO\b\]?\s?[-:|]?\s|INFO\b[^|]{0,60}\d:\d[^|]{0,20}(?=\|))",
    re.IGNORECASE,
)
"""What Python's logging puts before a row."""

_BAR = Regex(r":?\s{1,9}\d{1,3}%(?:.{0,80}?(?<!\d)(\d{1,18})/\d{1,18}(?:\s.*)?|\|[^\d|]{0,80})$")
"""The bar behind a row, or behind a header; the width of a terminal may cut it."""

_SECONDS = Regex(r"(?<=\d)\s{1,20}s(?:ec(?:onds)?)?\s*$")
"""The unit of the time in the last column, apart from it."""

_ENTRY = Regex(r"\|\s*([\w/.-][\w/. -]{0,99}?)\s*\|\s*(?:(\S{1,40})\s*)?\|\s*$")
_CLASSES = ("Images", "Instances", "precision", "recall", "mAP50", "mAP50-95")
_OF_TASKS = (*_CLASSES[:2], *(f"{name}_box" for name in _CLASSES[2:]), *_CLASSES[2:])
_LOSSES = ("box", "obj", "cls", "dfl", "seg", "pose", "kobj", "total")
"""YOLO's columns: of its validation, by place, also behind those of boxes, and losses."""

_WORDS = ("loss", "epoch", "step", "iter", "round", "episode", "class", "gen", "average", "ap50")
_OF_TABLES = (*_WORDS, *COUNTERS, "train", "val", "test", "dev", "all")
"""What headers have."""

_VALUE = Regex(r"(?<![\w@.-])\d|\d\.\d")
"""A number that is no part of a name: a header has none."""

_PRINTED = Regex(r"\S+")
_WORD = Regex("[a-z]{3}")
_MOST_WORDS = 9
"""Runs of three letters in a row of numbers: more are a sentence."""

_SHIFT = 2
"""Characters by which a cell stands behind its name where one before it is too long."""

_MOST_COLUMNS = 40
_LONGEST_NAME = 60
_LONGEST_HEADER = 1000
_TIMES = "(hh:mm:ss)"
"""A unit in MATLAB's header."""
_NORM = Regex(r"(?<=\s)\|{1,2}(\w{1,20})\|{1,2}(?=\s)")

_TENSOR = Regex(r"tensor\(([^,()]{1,40})(?:, [^()]{0,60})?\)")

_TOTALS = ("elapsed_time", "elapsed", "total_time", "wall_time")
_PARTS = ("time", "dur", "duration")


class _Box:
    """A box of names and values, which is one row."""

    def __init__(self) -> None:
        self.cells: dict[str, float] = {}

    def enter(self, name: str, value: str | None) -> None:
        """Take a line of it."""
        if value and _NUMBER.fullmatch(value) and len(self.cells) < _MOST_COLUMNS:
            self.cells[name.rpartition("/")[2]] = number(value.partition("/")[0].rstrip("%"))

    def close(self, family: str) -> list[Point]:
        """Return its points: it ends."""
        cells, self.cells = self.cells, {}
        points = points_of(family, cells)
        return points if points and points[0][2:4] != (None, None) else []


class Log:
    """A log of tables. Time elapsed: a column that says it, or the sum of the rows' times."""

    name: ClassVar[str] = "tables"
    partial: ClassVar[bool] = False

    def __init__(self) -> None:
        self._newest = ""  # row of names, as printed
        self._above: list[str] = []  # names in the text before, to which those below may belong
        self._names: list[str] = []
        self._sorts: list[NameKind] = []
        self._starts: list[int] = []  # of the names in the line of the header, [] where unknown
        self._least = 0  # cells of a whole row
        self._of_phases: list[str] = []
        self._index: int | None = None  # of the newest row that has one
        self._totals: list[int] = []  # columns of times
        self._parts: list[int] = []
        self._elapsed = 0.0
        self._box = _Box()
        self._is_validated = False  # the epoch of the newest row

    def may_read(self, lower: str) -> bool:
        """Tell whether a line may be a row or a header."""
        lower = _plain(lower)
        if "=" in lower:
            return False
        if "info" in lower and (match := _LOGGED.match(lower)):
            lower = lower[match.end() :]
        head = lower.lstrip(" \t|\u2502\u2503")[:1]
        is_text = head.isalpha() and (":" not in lower or "class" in lower)
        if is_text and "|" not in lower and "class" not in lower and not _PHASE.match(lower):
            is_text = not _VALUE.search(lower) and any(word in lower for word in _OF_TABLES)
        is_row = head in "0-#|+" and (head not in "0-" or len(_WORD.findall(lower)) <= _MOST_WORDS)
        return is_text or is_row

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        line = _plain(line)
        if "=" in line:
            return []
        is_near = self._names or "poch" in line
        if is_near and "INFO" in line[:80] and (match := _LOGGED.match(line)):
            line = line[match.end() :]
        if line.lstrip()[:1] == "#":  # as savetxt of NumPy begins a header, and knitr each line
            line = line.lstrip("# ")
        edge = line.lstrip()
        head = edge.lstrip("|\u2502\u2503 \t")[:1]
        if head.isdigit() or (head == "-" and edge[:5] != "-----"):
            return self._row(line) if self._names else self._row_of_index(line.split())
        if line == self._newest:
            return []
        if (edge[:1] == "|" and head.isalpha()) or edge[:5] == "-----":
            if match := _ENTRY.match(edge):
                self._box.enter(match[1], match[2])
                return []
            if self._box.cells:
                return self._box.close(self.name)
        is_of_classes = "Class " in line or "classes " in line
        if head.isalpha() and (is_of_classes or ":" not in line) and len(line) < _LONGEST_HEADER:
            if self._of_phases and (match := _PHASE.match(line)):
                return self._row_of(match[1], _BLANKS.split(line[match.end() :].strip()))
            lower = line.lower()
            if any(word in lower for word in _WORDS):
                self._header(_BAR.sub("", line) if is_of_classes else line)
        return []

    def _row_of_index(self, cells: list[str]) -> list[Point]:
        """Return the points of a row that has a number of its own before its cells."""
        index = whole(cells[0]) if cells[0].isdecimal() else None
        is_next = index is not None and index - (self._index or 0) in (0, 1)
        if not is_next or len(cells) != len(self._of_phases) + 1:
            return []
        self._index = index
        return self._row_of("", cells[1:])

    def _row_of(self, phase: str, cells: list[str]) -> list[Point]:
        """Return the points of a row that begins with a phase."""
        names = self._of_phases
        if len(cells) == len(_OF_TASKS) and names == [*_CLASSES]:
            names = [*_OF_TASKS]
        is_whole = len(cells) == len(names) or (phase == "all" and len(cells) > len(names))
        if not is_whole or not all(map(_NUMBER.fullmatch, cells)):
            return []
        if phase == "all":
            is_again, self._is_validated = self._is_validated, True
            if is_again and self._names:
                return []  # the best epoch's, when all have ended
        pairs = [
            pair for pair in zip(names, cells, strict=False) if name_kind(pair[0]) >= NameKind.WEAK
        ]
        of = "val" if phase == "all" else normal_name(phase.removesuffix("set"))
        return report(self.name, pairs, phase=of)

    def _header(self, line: str) -> None:
        names = _cells(line if _BLANKS.search(line.strip()) else _TWO_WORDS.sub(r"\1_", line))
        names = [_SHORT.get(name, name) for name in names]
        if "\t" not in line:
            parts = [part for name in names for part in _COLUMNS.split(name)]
            names = [part for name in parts for part in _columns(name)]
        if not 2 <= len(names) <= _MOST_COLUMNS or any(map(_NUMBER.fullmatch, names)):
            return
        if any(len(name) > _LONGEST_NAME or name.count(" ") > 2 for name in names):
            return
        if names[0] in ("Class", "classes"):
            self._of_phases = [*_CLASSES] if names[0] == "Class" else names[1:]
            return
        cells = names if "|" in line else line.split()
        above, self._above = self._above, cells
        if not self._take(names, line) and len(above) >= len(cells):
            pairs = zip(above[-len(cells) :], cells, strict=True)
            self._take([*above[: -len(cells)], *map(" ".join, pairs)], line)

    def _take(self, names: list[str], line: str) -> bool:
        """Take the names of a header, and tell whether they are some."""
        names = [f"{name}_loss" if name in _LOSSES else _UNIT.sub("", name) for name in names]
        meant = statistics_of(names)
        if names[:2] == ["iter", "target"]:  # of bayes_opt
            meant = {"target": "score"}
        names = [meant.get(name, name) for name in names]
        sorts = [name_kind(name) for name in names]
        counters = sum(what in (NameKind.EPOCH, NameKind.STEP) for what in sorts)
        metrics = sum(what >= NameKind.WEAK for what in sorts)
        is_all = metrics == len(names) and line[:1] != " "
        if metrics and (counters or is_all):
            self._newest = line
            self._least = len(names) - (names[-1].lower() == "notes")
            starts = [match.start() for match in _PRINTED.finditer(line)]
            self._starts = starts if len(starts) == len(names) else []
            self._names = [name.replace("main/", "") for name in names]  # a model in Chainer
            self._sorts = list(map(name_kind, self._names))
            places = {name: at for at, name in enumerate(self._names)}
            self._totals = [places[name] for name in _TOTALS if name in places]
            self._parts = [places[name] for name in _PARTS if name in places]
            return True
        if metrics > 1 and line[:1] == " ":
            self._of_phases = names
        return False

    def _row(self, line: str) -> list[Point]:
        """Return the points of a row; the step may be that of the bar behind it."""
        if NameKind.OTHER < self._sorts[0] <= NameKind.STEP and not _COUNTER_FIRST.match(line):
            return []
        bar = _BAR.search(line) if "%" in line else None
        line = line[: bar.start()] if bar else line
        line = _SECONDS.sub("", line) if line[-1:] == "s" else line
        words = _EDGE.sub(" ", line).split()
        cells = words if len(words) == len(self._names) else self._placed(line) or _cells(line)
        if len(cells) > len(self._names) or len(cells) < 2:
            return []
        pairs, epoch, step, rank = dict[str, str](), None, whole(bar[1]) if bar else None, 99
        for name, what, text in zip(self._names, self._sorts, cells, strict=False):
            if what is NameKind.OTHER:
                continue
            text = _whole_loss(text) if ", " in text else text.strip("[]")
            is_number = _NUMBER.fullmatch(text)
            if what > NameKind.STEP:
                if is_number and "/" not in text:
                    pairs[name] = text.rstrip("%")  # the last of equal names: the best
            elif not is_number:
                return []
            elif what is NameKind.EPOCH:
                epoch = float(text.partition("/")[0].replace(",", "").rstrip("%"))
            elif step_rank(name) < rank:
                step = whole(text.partition("/")[0].partition(".")[0].lstrip("+-"))
                rank = step_rank(name)
        if not pairs or (len(cells) < self._least and len(pairs) < 2):
            return []
        self._is_validated = False
        return report(self.name, pairs.items(), step=step, epoch=epoch, elapsed_s=self._time(cells))

    def _placed(self, line: str) -> list[str]:
        """Return the cells of a row that begin where their names do, or little behind that, ""
        for blank ones; none if another begins elsewhere."""
        cells = [""] * len(self._starts)
        for match in _PRINTED.finditer(line):
            column = bisect_right(self._starts, match.start()) - 1
            if column < 0 or match.start() - self._starts[column] > _SHIFT or cells[column]:
                return []
            cells[column] = match[0]
        return cells

    def _time(self, cells: list[str]) -> float | None:
        for at in self._totals:
            if at < len(cells):
                return clock(cells[at])
        for at in self._parts:
            if at < len(cells) and (spent := clock(cells[at])) is not None:
                self._elapsed += spent
                return self._elapsed
        return None


_SHORT = {"E": "epoch", "#": "step"}
"""Names of counters in spaCy's tables."""


def _plain(line: str) -> str:
    """Return a line with numbers for tensors, and without units that would be taken for values."""
    line = _TENSOR.sub(r"\1", line) if "tensor(" in line else line
    line = _NORM.sub(r"norm_\1", line) if "|" in line else line
    return line.replace(_TIMES, "")


def _columns(name: str) -> list[str]:
    """Return the names in what seems to be one name: counters, or metrics, each of which has a
    column, however close they stand."""
    words = name.split()
    kinds = {*map(name_kind, words)}
    are_counters = kinds <= {NameKind.EPOCH, NameKind.STEP}
    return words if are_counters or min(kinds) >= NameKind.WEAK else [name]


def _whole_loss(text: str) -> str:
    """Return the sum of the parts in a cell, such as [0.5, 0.25]."""
    try:
        return str(sum(map(float, text.strip("[]").split(", "))))
    except ValueError:
        return text


def _cells(line: str) -> list[str]:
    """Return the cells of a row, by what stands between them."""
    line = line.strip()
    if "|" in line or "\u2502" in line or "\u2503" in line:
        return [cell.strip("*`[]") for cell in _BARS.split(line.strip("|\u2502\u2503 \t"))]
    if "," in line:
        cells = [cell.strip() for cell in line.split(",")]
        if ", " not in line.rstrip(", ") or not any(" " in cell for cell in cells):
            return cells
    cells = [cell.strip() for cell in _BLANKS.split(line)]
    return cells if len(cells) > 1 else line.split()
