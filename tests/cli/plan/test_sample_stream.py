"""Samples of recordings and streams, and the account of what was read."""

import io
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from dltools.cli.input_streams import Source
from dltools.cli.plan.sample_stream import Account, Samples
from dltools.observations.formats.arrow import END_MARK
from dltools.observations.formats.registry import Recording
from dltools.observations.table import to_table

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def table(second: int) -> Any:
    time = NOON + timedelta(seconds=second)
    return to_table([{"time": time, "host": "h", "kind": "node", "cpu_count": 1.0}])


def regular_file(tmp_path: Any) -> Source:
    (tmp_path / "file").write_bytes(b"")
    return Source((tmp_path / "file").open("rb"))


def test_a_stream_in_a_file_is_closed_however_it_ends(tmp_path) -> None:
    samples = Samples(Recording(True, iter([table(0)])), regular_file(tmp_path))
    assert (samples.is_stream, samples.is_live, samples.are_closed) == (True, False, True)


def test_a_live_stream_is_closed_by_its_mark() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"rows" + END_MARK)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        source = Source(stream)
        samples = Samples(Recording(True, iter([table(0)])), source)
        assert samples.is_live
        assert not samples.are_closed
        source.read()
        assert samples.are_closed


def test_a_recording_is_no_stream() -> None:
    samples = Samples(Recording(False, iter([table(0)])), Source(io.BytesIO()))
    assert (samples.is_stream, samples.is_live, samples.are_closed) == (False, False, False)


def test_an_account_counts_rows_and_the_span_of_their_times() -> None:
    account = Account()
    assert account.to_json() == {"rows": 0, "from": "", "to": ""}
    for second in (1, 0):
        account.add(table(second))
    account.add(table(0).slice(0, 0))
    assert account.to_json() == {
        "rows": 2,
        "from": "2026-01-31T12:00:00.000000Z",
        "to": "2026-01-31T12:00:01.000000Z",
    }
