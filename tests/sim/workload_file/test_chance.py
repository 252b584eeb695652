"""Streams of jobs, and what a seed decides."""

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


def test_a_stream_takes_kinds_in_turn_at_its_arrivals() -> None:
    text = KINDS + '[[stream]]\ncount = 3\narrivals = "fixed"\ngap = 7\nbegin = 1\npick = "turn"\n'
    found = read_workload(text + 'kinds = ["mnist", "cnn"]', "f")
    assert [(j.name, j.arrival) for j in found.jobs] == [
        ("mnist-1", 1.0), ("cnn-2", 8.0), ("mnist-3", 15.0),
    ]  # fmt: skip


def test_a_seed_decides_what_is_left_to_chance() -> None:
    text = KINDS + '[[stream]]\ncount = 20\narrivals = "random"\n[vary]\nwork = 0.1\narrival = 3\n'
    text += '[[job]]\nname = "a"\nwork = 100'
    one, again, other = (read_workload(text, "f", seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    found = [read_workload(text, "f", seed) for seed in range(200)]
    named = [next(job for job in one.jobs if job.name == "a") for one in found]
    assert all(90 <= job.work <= 110 and 0 <= job.arrival <= 3 for job in named)
    assert 98 < sum(job.work for job in named) / 200 < 102
