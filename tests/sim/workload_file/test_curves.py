"""Curves from files: by hand, and faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.tools import Tools, complaint

from dltools.errors import DataError
from dltools.sim.workload_file.reading import read_workload

CSV = "progress,iteration,metric,extra\n5,10,86.7,1\n10,20,88.6,1\n"


def test_a_curve_comes_from_a_file() -> None:
    curve = '[[job]]\ncurve = { metric = "f1", file = "bert.csv" }'
    job = read_workload(curve, "f", load={"bert.csv": CSV}.__getitem__).jobs[0]
    assert (job.curve.kind, job.curve.metric) == ("points", "f1")
    assert job.curve.table == ((0.5, 86.7), (1.0, 88.6))
    named = '[[job]]\ncurve = { file = "b", x = "iteration", y = "extra" }'
    assert read_workload(named, "f", load=lambda _: CSV).jobs[0].curve.table == (
        (0.5, 1.0),
        (1.0, 1.0),
    )


@pytest.mark.parametrize(
    ("curve", "text", "complaint"),
    [
        ('file = "b", y = "loss"', CSV, "f: job 1: b: no column 'loss'; it has progress, iter"),
        ('file = "b", table = [[0, 1]]', CSV, "f: job 1: a curve has a table or a file"),
        ('x = "a"', CSV, "f: job 1: x and y are columns of a curve's file"),
        ('file = "b"', "", "f: job 1: b: no column ''"),
        ('file = "b"', "x,y\n1,z\n", "f: job 1: b: could not convert"),
        ('file = "b"', "x,y\n0,1\n", "f: job 1: b: column x has no number above 0"),
        ('file = "b", x = 3', CSV, "f: job 1: b: no column 3; it has progress"),
        ('kind = "points"', CSV, "f: job 1: a curve of points needs a table or a file"),
        ('kind = "sine"', CSV, "f: job 1: a curve's kind must be one of exponential, power"),
        ("table = [1]", CSV, "f: job 1: a curve's table must be pairs of"),
        ("file = 3", CSV, "f: job 1: a curve's file must be a name"),
    ],
)
def test_a_curves_file_at_fault_is_named(curve: str, text: str, complaint: str) -> None:
    with pytest.raises(DataError) as error:
        read_workload(f"[[job]]\ncurve = {{ {curve} }}", "f", load=lambda _: text)
    assert str(error.value).startswith(complaint)


def test_the_command_line_finds_a_curves_file_beside_the_workload(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(CSV)
    (tmp_path / "w.toml").write_text(
        '[[job]]\ncurve = { metric = "f1", file = "c.csv" }\nfirst = 88'
    )
    found = Tools()("dl-sim", "-p", "noop", tmp_path / "w.toml")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["time_to_first"] > 0
    (tmp_path / "c.csv").unlink()
    gone = Tools()("dl-sim", "-p", "noop", tmp_path / "w.toml")
    assert (gone.returncode, "c.csv: No such file" in complaint(gone.stderr)) == (65, True)
