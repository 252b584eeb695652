"""Workload files: mistakes and what to do, streams of jobs, and what a seed decides."""

import pytest

from dltools.errors import DataError
from dltools.labels import Role
from dltools.sim.workload import Phase
from dltools.sim.workload_file import read_workload


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[what]]", "f: unknown table [what]; known: [[node]], [[kind]], [[job]], [[stream]], "),
        ('[[job]]\nkind = "x"', "f: job 1: no kind is called 'x'; known: vae, gru"),
        ('[[kind]]\nkind = "x"', "f: kind 1: unknown key 'kind'"),
        ("[[stream]]\ncount = 0", "f: stream 1: count must be between 1 and 1000000"),
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
        ("[[job]]\ncurve = { rate = -1 }", "f: job 1: curve: rate and noise must not be below 0"),
        ("[[job]]\ncurve = { noise = -1 }", "f: job 1: curve: rate and noise must not be below 0"),
        ("[[job]]\ncurve = 3", "f: job 1: curve must be a table"),
        ("[[job]]\nseed = 3", "f: job 1: unknown key 'seed'"),
        ("[[job]]\nrole = 'boss'", "f: job 1: role must be one of training, server, interactive, "),
        ("[[job]]\nrole = 'other'", "f: job 1: a job of role other needs request, the CPU seconds"),
        (
            "[[job]]\nrole = 'training'\nrequest = 1\nduration = 1",
            "f: job 1: a job of role training does not serve: leave out request",
        ),
        ("[[job]]\nsilent = 1", "f: job 1: silent must be true or false, not 1"),
        ("[[job]]\ngpu_list = 'x'", "f: job 1: gpu_list must be numbers of GPUs, such as 0-1,3"),
        ("[[job]]\nname = 'a'\ndevice = 1", "f: job a: device needs a GPU: set gpus or gpu_list"),
        (
            "[[job]]\nname = 'a'\ngpu_list = '1'\n[[node]]\ncpus = 1\ngpus = 1",
            "f: job a: no node has the memory and GPUs that it needs",
        ),
        ("[[job]]\nmembers = 0", "f: job 1: members must be more than 0"),
        ("[[job]]\ncpus = -1", "f: job 1: cpus must not be below 0"),
        ("[[job]]\nphases = 3", "f: job 1: phases must be tables, such as [{ every = 5"),
        ("[[job]]\nphases = [{ every = 0 }]", "f: job 1: every and threads of a phase must be"),
        ("[[job]]\nphases = [{ cpu = -1 }]", "f: job 1: cpu and sleep of a phase must be between"),
        ("[[job]]\nphases = [{ when = 1 }]", "f: job 1: phase 1: unknown key 'when'; known: every"),
    ],
)
def test_what_is_wrong_is_said(text, complaint) -> None:
    with pytest.raises(DataError) as error:
        read_workload(text, "f")
    assert str(error.value).startswith(complaint)


def test_strangers_are_read() -> None:
    text = """
    [[node]]
    cpus = 8
    gpus = 2
    remote = true
    [[kind]]
    name = "net"
    device = 2.0
    gpus = 1
    idle_threads = 30
    phases = [{ every = 5, cpu = 4, threads = 2 }, { sleep = 3.5 }]
    [[job]]
    kind = "net"
    members = 2
    cpus = 1.5
    cpu_weight = 512
    silent = true
    protected = true
    [[job]]
    name = "note"
    role = "interactive"
    request = 0.05
    duration = 60
    docker = ["--cpuset-cpus", "0"]
    """
    found = read_workload(text, "f")
    net, note = found.jobs
    assert (found.hosts[0].gpus, found.hosts[0].remote) == (2, True)
    assert net.phases == (Phase(5, cpu=4.0, threads=2), Phase(sleep=3.5))
    assert (net.device, net.gpus, net.idle_threads, net.members) == (2.0, 1, 30, 2)
    assert (net.cpus, net.cpu_weight, net.silent, net.protected) == (1.5, 512.0, True, True)
    assert (net.acts_as, note.acts_as) == (Role.TRAINING, Role.INTERACTIVE)
    assert (net.reports, note.reports) == (False, False)
    assert note.container.docker == ("--cpuset-cpus", "0")


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
    arrivals = [(job.name, job.arrival) for job in found.jobs]
    assert arrivals == [("mnist-1", 1.0), ("cnn-2", 8.0), ("mnist-3", 15.0)]


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
