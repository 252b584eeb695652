"""Workload files with mistakes: the errors say what to do."""

from __future__ import annotations

import pytest

from dltools.errors import DataError
from dltools.sim.workload_file.reading import read_workload


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[what]]", "f: unknown table [what]; known: [[node]], [[kind]], [[job]], [[stream]], "),
        ('[[job]]\nkind = "x"', "f: job 1: no kind is called 'x'; known: vae, gru"),
        ('[[kind]]\nkind = "x"', "f: kind 1: unknown key 'kind'"),
        ("[[stream]]\ncount = 0", "f: stream 1: count must be between 1 and 1000000"),
        ("[[stream]]\nkinds = []", "f: stream 1: kinds must be a list of names"),
        ("[[stream]]\nkinds = [3]", "f: stream 1: no kind is called 3"),
        ('[[stream]]\narrivals = "now"', "f: stream 1: arrivals must be one of fixed, random"),
        ('[[stream]]\npick = "best"', "f: stream 1: pick must be random or turn"),
        ("[[stream]]\nrate = 2", "f: stream 1: unknown key 'rate'; known: count, arrivals"),
        ("[vary]\nwork = 1", "f: vary: work must be at least 0 and less than 1"),
        ("[vary]\narrival = -1", "f: vary: arrival must not be below 0"),
        ("vary = 3", "f: write [vary] once"),
        ("job = 3", "f: write [[job]] once for each job"),
        ("[[stream]]\ngap = -1", "f: stream 1: gap must be between 0 and 1000000000 seconds"),
        ("[[node]]\nname = 'a'", "f: node a: cpus is missing: say how many CPUs the host has"),
        ("[[node]]\ncpus = 0", "f: node 1: cpus must be more than 0 and less than 1000000"),
        ("[[job]]\nwork = 0", "f: job 1: work must be more than 0"),
        ("[[job]]\nthink = -1", "f: job 1: think must not be below 0"),
        ("[[job]]\nepochs = 2000000", "f: job 1: epochs must be at most 1000000"),
        ("[[job]]\nspin = 2", "f: job 1: spin must be between 0 and 1"),
        ("[[job]]\nrequest = 1", "f: job 1: a serving job needs a duration in seconds"),
        ("[[job]]\nwork = 'x'", "f: job 1: work must be a number, not 'x'"),
        ("[[job]]\nwork = inf", "f: job 1: work must be between -1e300 and 1e300, not inf"),
        ("[[job]]\nthreads = 1.5", "f: job 1: threads must be a whole number, not 1.5"),
        ("[[job]]\nname = ''", "f: job : name must be text, not ''"),
        ("[[job]]\ncurve = 3", "f: job 1: curve must be a table"),
        ("[[job]]\nseed = 3", "f: job 1: unknown key 'seed'"),
    ],
)
def test_what_is_wrong_is_said(text: str, complaint: str) -> None:
    with pytest.raises(DataError) as error:
        read_workload(text, "f")
    assert str(error.value).startswith(complaint)
