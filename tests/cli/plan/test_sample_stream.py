"""Samples of recordings and streams, and the account of what was read."""

import io
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dltools.cli.input_streams import Hashed
from dltools.cli.plan.sample_stream import Account, Samples
from dltools.errors import DataError
from dltools.observations.formats.registry import Recording
from dltools.observations.table import to_table

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def table(second: int) -> Any:
    time = NOON + timedelta(seconds=second)
    return to_table([{"time": time, "host": "h", "kind": "node", "cpu_count": 1.0}])


def regular_file(tmp_path: Any) -> Hashed:
    (tmp_path / "file").write_bytes(b"")
    return Hashed((tmp_path / "file").open("rb"))


def test_the_last_sample_of_a_stream_in_a_file_is_known(tmp_path) -> None:
    samples = Samples(Recording(True, iter([table(0), table(1)])), regular_file(tmp_path))
    assert (samples.is_stream, samples.is_live) == (True, False)
    assert [sample.is_last for sample in samples] == [False, True]


def test_the_last_sample_of_a_live_stream_is_not_known() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        samples = Samples(Recording(True, iter([table(0), table(1)])), Hashed(stream))
        assert samples.is_live
        assert [sample.is_last for sample in samples] == [False, False]


def test_a_stream_that_is_cut_off_gives_what_came_before_as_the_last(tmp_path) -> None:
    def cut() -> Iterator[Any]:
        yield table(0)
        raise DataError("cut off")

    samples = iter(Samples(Recording(True, cut()), regular_file(tmp_path)))
    assert next(samples).is_last
    with pytest.raises(DataError, match="cut off"):
        next(samples)


def test_a_recording_is_no_stream() -> None:
    samples = Samples(Recording(False, iter([table(0)])), Hashed(io.BytesIO()))
    assert (samples.is_stream, samples.is_live) == (False, False)
    assert [sample.is_last for sample in samples] == [False]


def test_an_account_counts_rows_and_the_span_of_their_times() -> None:
    account = Account("before")
    assert account.to_json() == {"rows": 0, "from": "", "to": "", "sha256": "before"}
    for second in (1, 0):
        account.add(table(second), "after")
    account.add(table(0).slice(0, 0), "end")
    assert account.to_json() == {
        "rows": 2,
        "sha256": "end",
        "from": "2026-01-31T12:00:00.000000Z",
        "to": "2026-01-31T12:00:01.000000Z",
    }
