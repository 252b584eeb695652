"""Jobs, curves and containers in a workload file: by hand, and faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.tools import Tools, complaint
from sim.test_workload_file import KINDS

from dltools.errors import DataError
from dltools.sim.workload import ContainerSpec
from dltools.sim.workload_file import read_workload


def test_a_job_is_of_its_kind_where_it_says_nothing_itself() -> None:
    found = read_workload(KINDS + '[[job]]\nkind = "mnist"\n[[job]]\nkind = "mnist"\nwork = 5', "f")
    assert [(j.name, j.work, j.threads, j.curve.kind) for j in found.jobs] == [
        ("mnist-1", 160.0, 4, "power"),
        ("mnist-2", 5.0, 4, "power"),
    ]
    assert read_workload('[[job]]\nkind = "gru"', "f").jobs[0].work == 42.0


def test_noise_differs_between_seeds_and_is_as_ever_without_one() -> None:
    text = '[[job]]\nname = "a"\ncurve = { noise = 0.1 }'
    job, other = (read_workload(text, "f", seed).jobs[0] for seed in (0, 1))
    assert job.reported(3) == job.curve.reported(3 / job.epochs, "a", 3)
    assert job.reported(3) != other.reported(3)


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


CONTAINER = """
image = "dltools-torch"
command = ["--epochs", "40"]
labels = { "dltools.epochs" = "40" }
"""
TEXT = 'labels must be a table of text, such as { "dltools.epochs" = "40" }'


def test_a_job_says_how_to_start_it() -> None:
    (job,) = read_workload(f'[[job]]\nname = "a"\n{CONTAINER}', "f").jobs
    assert job.container == ContainerSpec(
        "dltools-torch", ("--epochs", "40"), {"dltools.epochs": "40"}
    )


def test_a_job_takes_what_it_does_not_say_from_its_kind() -> None:
    kind = f'[[kind]]\nname = "vae"\n{CONTAINER}'
    own = '[[job]]\nkind = "vae"\ncommand = []\n[[job]]\nkind = "vae"\nlabels = {}'
    first, second = read_workload(f"{kind}{own}", "f").jobs
    assert first.container == ContainerSpec("dltools-torch", (), {"dltools.epochs": "40"})
    assert second.container == ContainerSpec("dltools-torch", ("--epochs", "40"), {})


def test_streams_hand_it_on() -> None:
    kind = f'[[kind]]\nname = "mine"\n{CONTAINER}[[stream]]\ncount = 2\nkinds = ["mine"]'
    assert {job.container.image for job in read_workload(kind, "f").jobs} == {"dltools-torch"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("image = 5", "image must be text, not 5"),
        ('image = ""', "image must be text, not ''"),
        ('command = "train"', 'command must be a list of text, such as ["--epochs", "40"]'),
        ("command = [1]", 'command must be a list of text, such as ["--epochs", "40"]'),
        ("labels = []", TEXT),
        ("labels = { a = 1 }", TEXT),
        ('labels = { "" = "1" }', "a label needs a name"),
    ],
)
def test_what_is_no_container_is_refused(line: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_workload(f'[[job]]\nname = "a"\n{line}', "f")
    assert str(error.value) == f"f: job a: {message}"


def test_the_simulation_ignores_it() -> None:
    plain = '[[job]]\nname = "a"\nwork = 10\n'
    found = [
        Tools()("dl-sim", "-p", "flowcon", "--jobs", input=text.encode()).stdout
        for text in (plain, plain + CONTAINER)
    ]
    assert found[0] == found[1] != b""
