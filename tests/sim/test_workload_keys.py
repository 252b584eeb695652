"""Jobs, curves and containers in a workload file: by hand, and faults."""

import pytest
from helpers.tools import Tools
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


@pytest.mark.parametrize(
    ("curve", "complaint"),
    [
        ('kind = "points"', "f: job 1: a curve of points needs a table"),
        ('kind = "sine"', "f: job 1: a curve's kind must be one of exponential, power"),
        ("table = [1]", "f: job 1: a curve's table must be pairs of"),
        ('file = "b"', "f: job 1: curve: unknown key 'file'"),
    ],
)
def test_a_curve_at_fault_is_named(curve, complaint) -> None:
    with pytest.raises(DataError) as error:
        read_workload(f"[[job]]\ncurve = {{ {curve} }}", "f")
    assert str(error.value).startswith(complaint)


CONTAINER = """
image = "dltools-torch"
command = ["--epochs", "40"]
labels = { "dltools.epochs" = "40" }
"""


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


def test_the_simulation_ignores_it() -> None:
    plain = '[[job]]\nname = "a"\nwork = 10\n'
    found = [
        Tools()("dl-sim", "-p", "flowcon", "--jobs", input=text.encode()).stdout
        for text in (plain, plain + CONTAINER)
    ]
    assert found[0] == found[1] != b""
