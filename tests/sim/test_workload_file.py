"""Workload files: kinds, streams, what a seed decides, and what is said of mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.tools import Tools, complaint

from dltools.errors import DataError
from dltools.sim.workload_file import read

KINDS = """
[[kind]]
name = "mnist"
work = 160
threads = 4
spin = 0
curve = { kind = "power", end = 0.2 }
"""


def test_a_job_is_of_its_kind_where_it_says_nothing_itself() -> None:
    found = read(KINDS + '[[job]]\nkind = "mnist"\n[[job]]\nkind = "mnist"\nwork = 5', "f")
    assert [(j.name, j.work, j.threads, j.curve.kind) for j in found.jobs] == [
        ("mnist-1", 160.0, 4, "power"), ("mnist-2", 5.0, 4, "power"),
    ]  # fmt: skip
    assert read('[[job]]\nkind = "gru"', "f").jobs[0].work == 42.0


def test_a_stream_takes_kinds_in_turn_at_its_arrivals() -> None:
    text = KINDS + '[[stream]]\ncount = 3\narrivals = "fixed"\ngap = 7\nbegin = 1\npick = "turn"\n'
    found = read(text + 'kinds = ["mnist", "cnn"]', "f")
    assert [(j.name, j.arrival) for j in found.jobs] == [
        ("mnist-1", 1.0), ("cnn-2", 8.0), ("mnist-3", 15.0),
    ]  # fmt: skip


def test_a_seed_decides_what_is_left_to_chance() -> None:
    text = KINDS + '[[stream]]\ncount = 20\narrivals = "random"\n[vary]\nwork = 0.1\narrival = 3\n'
    text += '[[job]]\nname = "a"\nwork = 100'
    one, again, other = (read(text, "f", seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    works = [read(text, "f", seed).jobs[0].work for seed in range(200)]
    named = [next(j for j in read(text, "f", seed).jobs if j.name == "a") for seed in range(200)]
    assert works
    assert all(90 <= job.work <= 110 and 0 <= job.arrival <= 3 for job in named)
    assert 98 < sum(job.work for job in named) / 200 < 102


def test_noise_differs_between_seeds_and_is_as_ever_without_one() -> None:
    text = '[[job]]\nname = "a"\ncurve = { noise = 0.1 }'
    job, other = (read(text, "f", seed).jobs[0] for seed in (0, 1))
    assert job.reported(3) == job.curve.reported(3 / job.epochs, "a", 3)
    assert job.reported(3) != other.reported(3)


CSV = "progress,iteration,metric,extra\n5,10,86.7,1\n10,20,88.6,1\n"


def test_a_curve_comes_from_a_file() -> None:
    curve = '[[job]]\ncurve = { metric = "f1", file = "bert.csv" }'
    job = read(curve, "f", load={"bert.csv": CSV}.__getitem__).jobs[0]
    assert (job.curve.kind, job.curve.metric) == ("points", "f1")
    assert job.curve.table == ((0.5, 86.7), (1.0, 88.6))
    named = '[[job]]\ncurve = { file = "b", x = "iteration", y = "extra" }'
    assert read(named, "f", load=lambda _: CSV).jobs[0].curve.table == ((0.5, 1.0), (1.0, 1.0))


@pytest.mark.parametrize(
    ("curve", "text", "complaint"),
    [
        ('file = "b", y = "loss"', CSV, "f: job 1: b: no column 'loss'; it has progress, iter"),
        ('file = "b", table = [[0, 1]]', CSV, "f: job 1: a curve has a table or a file"),
        ('x = "a"', CSV, "f: job 1: x and y are columns of a curve's file"),
        ('file = "b"', "", "f: job 1: b: no column ''"),
        ('file = "b"', "x,y\n1,z\n", "f: job 1: b: could not convert"),
        ('file = "b"', "x,y\n0,1\n", "f: job 1: b: column x has no number above 0"),
        ("file = 3", CSV, "f: job 1: a curve's file is a name"),
    ],
)
def test_a_curves_file_at_fault_is_named(curve: str, text: str, complaint: str) -> None:
    with pytest.raises(DataError) as error:
        read(f"[[job]]\ncurve = {{ {curve} }}", "f", load=lambda _: text)
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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[what]]", "f: unknown table [what]; known: [[node]], [[kind]], [[job]], [[stream]], "),
        ('[[job]]\nkind = "x"', "f: job 1: no kind is called 'x'; known: vae, gru"),
        ('[[kind]]\nkind = "x"', "f: kind 1: unknown key 'kind'"),
        ("[[stream]]\ncount = 0", "f: stream 1: count is from 1 to 1,000,000"),
        ("[[stream]]\nkinds = []", "f: stream 1: kinds is a list of names"),
        ("[[stream]]\nkinds = [3]", "f: stream 1: no kind is called 3"),
        ('[[stream]]\narrivals = "now"', "f: stream 1: arrivals is one of fixed, random"),
        ('[[stream]]\npick = "best"', "f: stream 1: pick is random or turn"),
        ("[[stream]]\nrate = 2", "f: stream 1: unknown key 'rate'; known: count, arrivals"),
        ("[vary]\nwork = 1", "f: vary: parts are from 0 to 1"),
        ("vary = 3", "f: write [vary], once"),
        ("[[job]]\nseed = 3", "f: job 1: unknown key 'seed'"),
    ],
)
def test_what_is_wrong_is_said(text: str, complaint: str) -> None:
    with pytest.raises(DataError) as error:
        read(text, "f")
    assert str(error.value).startswith(complaint)
