"""The format of an output: from --format, the name of -o, and where it goes."""

import io
import sys

import pytest
import typer

from dltools.cli.formats import RecordFormat, RowFormat, format_by_name, format_for_stdout

SUFFIXES = {".csv": RowFormat.CSV, ".jsonl": RowFormat.JSONL}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_auto_is_a_table_on_a_terminal_else_json(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert format_for_stdout(RowFormat.AUTO) is RowFormat.JSONL
    assert format_for_stdout(RowFormat.CSV) is RowFormat.CSV
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert format_for_stdout(RecordFormat.AUTO) is RecordFormat.TABLE
    assert format_for_stdout(RecordFormat.JSONL) is RecordFormat.JSONL


@pytest.mark.parametrize(
    ("wanted", "output", "format_"),
    [
        (RowFormat.AUTO, "x.csv", RowFormat.CSV),
        (RowFormat.AUTO, "x.CSV", RowFormat.CSV),
        (RowFormat.AUTO, "x", RowFormat.AUTO),
        (RowFormat.AUTO, None, RowFormat.AUTO),
        (RowFormat.CSV, "x.csv", RowFormat.CSV),
        (RowFormat.TABLE, "x.txt", RowFormat.TABLE),
        (RowFormat.TABLE, "x.other", RowFormat.TABLE),
    ],
)
def test_the_name_of_the_output_decides_where_nothing_is_asked_for(wanted, output, format_) -> None:
    assert format_by_name(wanted, output, SUFFIXES) is format_


@pytest.mark.parametrize("output", ["x.xlsx", "a.b.XLSX", "x.txt"])
def test_an_ending_of_no_format_is_wrong_usage(output) -> None:
    with pytest.raises(typer.BadParameter, match=r"no format ends in \.\w+: use \.csv or \.jsonl$"):
        format_by_name(RowFormat.AUTO, output, SUFFIXES)


def test_a_device_may_have_any_name() -> None:
    assert format_by_name(RowFormat.AUTO, "/dev/fd/../null", SUFFIXES) is RowFormat.AUTO


def test_a_contradiction_is_wrong_usage() -> None:
    with pytest.raises(typer.BadParameter, match=r"x.csv: the suffix .csv contradicts --format js"):
        format_by_name(RowFormat.JSONL, "x.csv", SUFFIXES)
