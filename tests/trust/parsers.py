"""Every parser of text and bytes that others write, as a function of bytes that a fuzzer can call.

Each returns, or raises an error that its callers turn into one line or a gap. Anything else is a
finding, and so is an input that takes longer than `LONGEST_S`.
"""

import http.client
import io
import re
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hypothesis import strategies as st

from dltools.actions.plan_lines import dump_plan, load_plans
from dltools.apply.migrate.migration import MigrationFiles, first_header
from dltools.bounded_reading import read_lines, read_whole
from dltools.cli.plan import targets_file
from dltools.cli.report.loading import read_job_table
from dltools.engine.docker.streams import EntrySplitter
from dltools.engine.interface import Network
from dltools.engine.journal import Journal
from dltools.engine.state_folder import StateFolder
from dltools.engine.turn_notes import TurnNotes
from dltools.errors import DltoolsError
from dltools.labels import parse_labels, unknown_labels
from dltools.notation.resources import parse_cpus
from dltools.notation.times import parse_duration, parse_time
from dltools.observations import targets
from dltools.observations.formats.registry import read
from dltools.observations.samples_by_host import samples_by_host
from dltools.plan.planner import Planner
from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.plan.realisation.options import RealisationOptions
from dltools.probe.endpoints import scraper
from dltools.probe.endpoints.where import candidates
from dltools.probe.endpoints.window import parse_metrics, window
from dltools.probe.files import event_file
from dltools.probe.files.readers import reader_of, reader_of_named
from dltools.probe.progress import Automatic, Pattern, PointReader
from dltools.sim.workload_file import read_workload

LONGEST, LONGEST_S = 1 << 16, 2.0
"""Bytes of an input, and the CPU time that it may take."""

SEEDS = Path(__file__).parent / "seeds"


@dataclass(frozen=True)
class Parser:
    """A parser: what is called with bytes, which errors are its answer to bad input, and whose
    seeds it begins with (its own name's if that is empty)."""

    call: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...] = (DltoolsError,)
    seeds_of: str = ""


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _plans(data: bytes) -> object:
    return [dump_plan(plan) for plan in load_plans(read_lines(io.BytesIO(data), "x"), "x")]


def _planner(saved: Mapping[str, Any] | None = None) -> Planner:
    policy = registry.get("flowcon")
    return Planner(policy, build(policy.parameters, {}), RealisationOptions(), saved)


def _observations(data: bytes) -> object:
    read_whole(io.BytesIO(data), "x")
    made = _planner()
    for table in read(io.BytesIO(data), "x").tables:
        for _ in samples_by_host(table):
            pass
        made.add(table)
    return dump_plan(made.plan({}))


def _state(data: bytes) -> object:
    """Refused as `dl-plan --state` does it: `blaming_state` makes these errors one line."""
    saved = [plan.state for plan in load_plans(read_lines(io.BytesIO(data), "x"), "x")]
    return [dump_plan(_planner(state).plan({})) for state in saved]


def _log(data: bytes) -> object:
    reader: PointReader[None] = PointReader(Automatic())
    middle = len(data) // 2
    return [*reader.feed(data[:middle]), *reader.feed(data[middle:]), *reader.end()]


def _pattern(data: bytes) -> object:
    expression, _, line = _text(data).partition("\n")
    return Pattern(expression).points(line)


def _labels(data: bytes) -> object:
    """Nothing in a label may make the probe fail; what makes no sense is left out."""
    text = _text(data)
    labels = parse_labels(text) | {
        "dltools.target": text,
        "dltools.metric": text,
        "dltools.qoe": text,
        "dltools.epochs": text,
        "dltools.deadline": text,
    }
    network = Network(addresses=("10.0.0.1",))
    return unknown_labels(labels), targets.parse(labels), list(candidates(network, text))


def _words(data: bytes) -> object:
    text = _text(data)
    for work in (parse_cpus, parse_duration, parse_time):
        try:
            work(text)
        except ValueError:
            continue
    return None


def _workload(data: bytes) -> object:
    return read_workload(_text(data), "x")


def _endpoint(data: bytes) -> object:
    head, _, tail = _text(data).partition("\n--\n")
    return window(parse_metrics(head), parse_metrics(tail or head), 1.0)


class _Answer:
    """A socket with an answer on it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._data)


def _http(data: bytes) -> object:
    answer: Any = _Answer(data)
    response = http.client.HTTPResponse(answer, method="GET")
    response.begin()
    return parse_metrics(scraper._text_of(response, time.monotonic() + 1))


def _file(name: str) -> Callable[[bytes], object]:
    def call(data: bytes) -> object:
        reader = reader_of(name) or reader_of_named(name)
        middle = len(data) // 2
        pieces = (data,) if reader.whole else (data[:middle], data[middle:])
        return [reader.feed(piece) for piece in pieces]

    return call


class _Folder(StateFolder):
    """A state directory's folder with one record, in memory."""

    def __init__(self, data: bytes) -> None:
        super().__init__(Path("/nowhere/x"))
        self._data = data

    def names(self) -> list[str]:
        return ["x.json"]

    def read(self, name: str) -> bytes:
        del name
        return self._data


def _event(data: bytes) -> object:
    """An event with the checksums of a whole record, without which nothing is read of it."""
    head = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", event_file._masked_crc(part)) for part in (head, data)]
    return _file("/x/events.out.tfevents.1")(head + sums[0] + data + sums[1])


def _records(kind: Callable[[Path], Any]) -> Parser:
    def call(data: bytes) -> object:
        made = kind(Path("/nowhere/x"))
        made._folder = _Folder(data)
        return made.all()

    return Parser(call)


def _archive(data: bytes) -> object:
    return first_header(iter([data[:700], data[700:]]))


def _entries(data: bytes) -> object:
    found = []
    for tty in (True, False):
        splitter = EntrySplitter(tty)
        found += [*splitter.feed(data[:50]), *splitter.feed(data[50:]), *splitter.end()]
    return found


_OF_STATE = (
    DltoolsError,
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    IndexError,
    OverflowError,
)

PARSERS: dict[str, Parser] = {
    "plan": Parser(_plans),
    "plan-state": Parser(_state, _OF_STATE, "plan"),
    "observations-jsonl": Parser(_observations),
    "observations-csv": Parser(_observations),
    "observations-arrow": Parser(_observations),
    "observations-parquet": Parser(_observations),
    "log": Parser(_log, ()),
    "log-pattern": Parser(_pattern),
    "log-entries": Parser(_entries, ()),
    "labels": Parser(_labels, ()),
    "notation": Parser(_words, ()),
    "workload": Parser(_workload),
    "targets": Parser(lambda data: targets_file.read_targets_file(_text(data), "x")),
    "endpoint": Parser(_endpoint, ()),
    "http": Parser(_http, (OSError, http.client.HTTPException, ValueError)),
    "tensorboard": Parser(_file("/x/events.out.tfevents.1"), ()),
    "tensorboard-event": Parser(_event, ()),
    "csv": Parser(_file("/x/metrics.csv"), ()),
    "jsonlines": Parser(_file("/x/a.jsonl"), ()),
    "trainer-state": Parser(_file("/x/trainer_state.json"), ()),
    "mlflow": Parser(_file("/x/mlruns/1/metrics/loss"), ()),
    "journal": _records(Journal),
    "turn-note": _records(TurnNotes),
    "migration": _records(MigrationFiles),
    "archive": Parser(_archive),
    "job-table": Parser(lambda data: read_job_table(data, "x", "x")),
}


def attempt(parser: Parser, data: bytes) -> None:
    """Try one input. Raises what is a finding."""
    begun = time.process_time()
    try:
        parser.call(data)
    except parser.refuses as error:
        said = str(error)
        if isinstance(error, DltoolsError) and ("\n" in said or re.search(r"[\x00-\x1f]", said)):
            raise AssertionError(f"a message that is not one printable line: {said!r}") from error
    took = time.process_time() - begun
    assert took < LONGEST_S, f"it took {took:.1f} s of CPU time"


def seeds(name: str) -> list[bytes]:
    """Return the inputs that a parser begins with."""
    folder = SEEDS / (PARSERS[name].seeds_of or name)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


_TOKENS = (
    *b"0 -1 1e400 nan NaN -inf 1e-320 null true {} [] = , : loss 0001-01-01".split(),
    b'""',
    b"9999-12-31T23:59:59Z",
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\r",
    b"\n",
    b"\t",
    b"\x1b[2J",
    b"\xef\xbb\xbf",
    "\u202e".encode(),
    b"9" * 400,
    b"1" * 5000,
    b"[" * 2000,
    b'{"a":' * 500,
)


@st.composite
def mutated(draw: st.DrawFn, begin: list[bytes]) -> bytes:
    """Return a seed with some changes."""
    data = bytearray(draw(st.sampled_from(begin)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(1, 40))
        change = draw(st.integers(0, 4))
        if change == 0:
            del data[at : at + size]
        elif change == 1:
            data[at:at] = draw(st.binary(max_size=8))
        elif change == 2:
            data[at : at + draw(st.sampled_from((0, size)))] = draw(st.sampled_from(_TOKENS))
        elif change == 3:
            data[at:at] = data[at : at + size] * draw(st.sampled_from((1, 2, 100)))
        else:
            other = draw(st.sampled_from(begin))
            data[at:] = other[draw(st.integers(0, len(other))) :]
    return bytes(data[:LONGEST])


def inputs(name: str) -> st.SearchStrategy[bytes]:
    """Return what a parser is tried with: its seeds with some changes, and bytes of chance."""
    begin = seeds(name)
    return st.one_of(mutated(begin), mutated(begin), st.binary(max_size=400))
