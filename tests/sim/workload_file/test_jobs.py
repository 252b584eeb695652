"""Jobs and kinds of jobs in a workload file."""

from __future__ import annotations

from dltools.sim.workload_file.reading import read_workload

KINDS = """
[[kind]]
name = "mnist"
work = 160
threads = 4
spin = 0
curve = { kind = "power", end = 0.2 }
"""


def test_a_job_is_of_its_kind_where_it_says_nothing_itself() -> None:
    found = read_workload(KINDS + '[[job]]\nkind = "mnist"\n[[job]]\nkind = "mnist"\nwork = 5', "f")
    assert [(j.name, j.work, j.threads, j.curve.kind) for j in found.jobs] == [
        ("mnist-1", 160.0, 4, "power"), ("mnist-2", 5.0, 4, "power"),
    ]  # fmt: skip
    assert read_workload('[[job]]\nkind = "gru"', "f").jobs[0].work == 42.0


def test_noise_differs_between_seeds_and_is_as_ever_without_one() -> None:
    text = '[[job]]\nname = "a"\ncurve = { noise = 0.1 }'
    job, other = (read_workload(text, "f", seed).jobs[0] for seed in (0, 1))
    assert job.reported(3) == job.curve.reported(3 / job.epochs, "a", 3)
    assert job.reported(3) != other.reported(3)
