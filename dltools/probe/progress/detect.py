"""Finding the families of formats that a log belongs to, by trying all on its first lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from dltools.probe.progress.base import Family, Point
from dltools.probe.progress.drawn import BarFamily
from dltools.probe.progress.name_words import may_be_named
from dltools.probe.progress.named import Named

FAMILIES: tuple[str, ...] = (
    "mlperf", "serving",
    "keras", "lightning", "huggingface", "nanogpt", "megatron", "deepspeed", "fairseq",
    "mm", "detectron", "yolo", "darknet", "nvidia", "pytorch", "tensorflow", "mxnet", "caffe",
    "boosting", "espnet", "kaldi", "baselines", "cntk", "tables", "tqdm", "jsonlines", "latency",
)  # fmt: skip
"""Modules of `families`, each with a class `Log`. If several claim a line, the first one counts."""

MANY = 20
"""Lines with points after which the families seen so far are kept, and no other is tried."""

_WHOLE = ("mlperf", "mm", "nvidia", "jsonlines")
"""Families whose lines may hold JSON: a cut object cannot be read."""

_ALWAYS = ("mlperf", "serving")
"""Families that are kept in any log: their lines may begin late."""

LONGEST_TEXT = 4_096
"""Characters of a line that all other families look at: what an expression costs can grow with the
square of it."""

_LOST = 200
"""Lines without a point after which all families are tried again, and the generic reader too."""


_LONGEST_KEY, _MOST_KEYS = 600, 4_096
"""Characters of a line that is remembered by what it is without its digits, and how many are."""


class Claim(NamedTuple):
    """The points of one line, and who found them.

    `rivals` is how many lines a family has that found none in this one: the generic reader's points
    are doubtful beside such a family. `is_sure` says that the line stands for itself,
    `has_fraction` that a number of a metric is printed with one, be it `.00`.
    """

    points: list[Point]
    is_sure: bool = True
    rivals: int = 0
    has_fraction: bool = False


NOTHING = Claim([])


class Automatic:
    """Finds the families of one log, and its points.

    Every family sees every line until `MANY` lines had points; then only those that found some go
    on. A family that is `partial` claims its lines, never the log. The generic reader (`Named`)
    reads what no family claims; it retires when families have claimed `MANY` lines and more than it
    has, and comes back when they fall silent. Lines that differ in their digits alone are asked of
    the same families: of those that need something which is in them.
    """

    def __init__(self) -> None:
        """No family is known yet."""
        self._families = [_make(name) for name in FAMILIES]
        self._of_all = self._asked = _Asked(self._families)
        self._named = Named()
        self._kept: list[Family] = []
        self._reads_names = True
        self._votes: dict[str, int] = {}
        self._claimed = 0  # lines claimed by families that are not partial
        self._idle = 0

    def points(self, line: str) -> list[Point]:
        """Return the points of one line."""
        return self.claim(line).points

    def claim(self, line: str) -> Claim:
        """Return the points of one line, and how sure they are."""
        asked = self._asked.of(line)
        found = self._of_families(line, asked.questions) if asked.questions else []
        if not found and asked.may_be_named and self._reads_names:
            reading = self._named.read(line[:LONGEST_TEXT])
            if reading.points:
                rivals = max(0, self._claimed - self._votes.get("", 0))
                self._vote("")
                is_sure = reading.is_sure and not rivals
                return Claim(reading.points, is_sure, rivals, reading.has_fraction)
        if found:
            if found[0].source == "latency" and self._reads_names:
                reading = self._named.read(line[:LONGEST_TEXT])
                found = [*reading.points, *found] if reading.is_sure else found
            return Claim(found)
        self._idle += 1
        if self._idle > _LOST and (self._kept or not self._reads_names):
            self._start_again()
        return NOTHING

    def bar_family(self, line: str) -> BarFamily | None:
        """Return the family that is asked first for a line of a log whose families are known, None
        if its bars cannot be read together."""
        questions = self._asked.of(line).questions
        family = questions[0].family if self._kept and questions else None
        return family if isinstance(family, BarFamily) else None

    def count(self, family: str, lines: int) -> None:
        """Take note of lines with points of a family, which were read together."""
        self._claimed += lines
        self._votes[family] = self._votes.get(family, 0) + lines - 1
        self._vote(family)

    def _of_families(self, line: str, questions: Sequence[_Question]) -> list[Point]:
        found: list[Point] = []
        text = line[:LONGEST_TEXT]
        for points_of, needs_all, name, partial, _, _ in questions:
            points = points_of(line if needs_all else text)
            if points and not found:
                found = points
                if not partial:
                    self._claimed += 1
                self._vote(name)
                if self._kept:
                    break
        return found

    def _vote(self, name: str) -> None:
        """Count a line with points; after many, keep the families that found some."""
        self._idle = 0
        self._votes[name] = self._votes.get(name, 0) + 1
        if not self._kept and sum(self._votes.values()) >= MANY:
            self._kept = [f for f in self._families if f.name in (*self._votes, *_ALWAYS)]
            self._asked = _Asked(self._kept)
        if self._claimed >= MANY and self._claimed > self._votes.get("", 0):
            self._reads_names = False

    def _start_again(self) -> None:
        self._kept, self._votes, self._idle = [], {}, 0
        self._asked = self._of_all
        self._claimed, self._reads_names = min(self._claimed, 2), True


class _Question(NamedTuple):
    """What is asked for a line: a family's method, and whether it needs the whole line."""

    points_of: Callable[[str], list[Point]]
    needs_all: bool
    name: str
    partial: bool
    needs: tuple[str, ...]
    family: Family


class _ForLine(NamedTuple):
    """What is asked for lines of one kind, and whether the generic reader may find something."""

    questions: tuple[_Question, ...]
    may_be_named: bool


class _Asked:
    """Which of some families are asked for a line."""

    def __init__(self, families: Sequence[Family]) -> None:
        """No line is known yet."""
        questions = tuple(
            _Question(one.points, one.name in _WHOLE, one.name, one.partial, one.needs, one)
            for one in families
        )
        self._everything = _ForLine(questions, may_be_named=True)
        self._known: dict[bytes, _ForLine] = {}

    def of(self, line: str) -> _ForLine:
        """Return what is asked for a line."""
        if len(line) > _LONGEST_KEY:
            return self._everything
        key = line.encode("utf-8", "surrogatepass").translate(_ZEROS)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KEYS:
                self._known.clear()
            found = self._known[key] = self._worth_asking(key)
        return found

    def _worth_asking(self, key: bytes) -> _ForLine:
        lower = key.decode("utf-8", "surrogatepass").lower()
        questions = tuple(
            one
            for one in self._everything.questions
            if not one.needs or any(need in lower for need in one.needs)
        )
        return _ForLine(questions, may_be_named(lower))


_ZEROS = bytes.maketrans(b"123456789", b"000000000")


def _make(name: str) -> Family:
    made: Family = import_module(f"dltools.probe.progress.families.{name}").Log()
    return made
