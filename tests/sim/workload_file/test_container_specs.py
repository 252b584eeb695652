"""The keys image, command and labels: read and checked, and of no effect on a simulation."""

from __future__ import annotations

import pytest
from helpers.tools import Tools

from dltools.errors import DataError
from dltools.sim.workload import ContainerSpec
from dltools.sim.workload_file.reading import read_workload

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
)  # fmt: skip
def test_what_is_no_container_is_refused(line: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_workload(f'[[job]]\nname = "a"\n{line}', "f")
    assert str(error.value) == f"f: job a: {message}"


def test_the_simulation_ignores_it() -> None:
    plain = '[[job]]\nname = "a"\nwork = 10\n'
    found = [Tools()("dl-sim", "-p", "flowcon", "--jobs", input=text.encode()).stdout
             for text in (plain, plain + CONTAINER)]  # fmt: skip
    assert found[0] == found[1] != b""
