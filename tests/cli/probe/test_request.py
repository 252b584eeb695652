"""What dl-probe is asked for: options that contradict each other are refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer

from dltools.cli.probe.request import Request, parse_log_files, parse_start

LOG = ["a=/a.log"]


def request(**changes: Any) -> Request:
    return Request(**{"deadline_s": 10.0, **changes})


def test_an_interval_makes_a_stream() -> None:
    assert not request().is_stream
    assert request(interval_s=1.0, count=3, duration_s=9.0).is_stream


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"count": 1}, "--count and --duration need --interval"),
        ({"duration_s": 1.0}, "--count and --duration need --interval"),
        ({"interval_s": 0.0}, "--interval must be more than 0"),
        ({"interval_s": 1.0, "logs": ["x"]}, "--interval is for containers"),
        ({"logs": ["x"], "hosts": ["tcp://h:1"]}, "saved logs need no engine"),
        ({"deadline_s": 0.0}, "--deadline must be more than 0"),
        ({"logs_start": datetime(2026, 1, 31, tzinfo=UTC)}, "--start is for saved logs"),
        ({"lists_metrics": True, "interval_s": 1.0}, "--list-metrics excludes"),
        ({"lists_metrics": True, "output": "x"}, "--list-metrics excludes"),
        ({"log": LOG, "hosts": ["tcp://h:1"]}, "--log is for --host cgroup:"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(changes, fault) -> None:
    with pytest.raises(typer.BadParameter, match=fault):
        request(**changes)


def test_a_start_without_a_zone_is_in_utc() -> None:
    assert parse_start("2026-01-31T12:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    found = parse_start("2026-01-31T12:00+02:00")
    assert (found, found.utcoffset()) == (datetime(2026, 1, 31, 10, tzinfo=UTC), timedelta(0))


@pytest.mark.parametrize("text", ["soon", "", "2026-02-30"])
def test_what_is_no_time_is_refused_with_an_example(text) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time such as 2026-01-31T12:00Z"):
        parse_start(text)


def test_logs_are_given_by_name() -> None:
    found = parse_log_files(["jobs/a=/x=1.log", "b=/b", "jobs/a=/y"])
    assert found == {"jobs/a": ("/x=1.log", "/y"), "b": ("/b",)}
    assert request(log=LOG, hosts=["cgroup:/jobs/*"]).log_files == {"a": ("/a.log",)}
    for wrong in ("a", "=x", "a="):
        with pytest.raises(typer.BadParameter, match="is not NAME=PATH"):
            parse_log_files([wrong])
