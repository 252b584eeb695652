"""A simulation as observations."""

from helpers.simulations import simulation

from dltools.observations.container_records import read_containers
from dltools.sim.simulated_recording import BEGUN, Recorder
from dltools.sim.simulation import Observer
from dltools.sim.workload import HostSpec, Job, LearningCurve, workload_of


def test_samples_and_reports_are_those_of_the_simulation() -> None:
    line = LearningCurve("loss", "linear", 1.0, 0.0)
    jobs = [
        Job("a", work=10.0, epochs=5, curve=line, first=0.4),
        Job("b", 4.0, work=2.0, threads=2),
    ]
    recorder = Recorder()
    made = workload_of(jobs, [HostSpec("h", 4.0)], "t")
    simulation(made, observer=Observer(recorder, 2.0)).run()
    found = read_containers([recorder.table()])
    (host,) = found.hosts
    a, b = sorted(found.containers, key=lambda one: one.name)
    begun = BEGUN.timestamp()
    assert (host.name, host.cpus) == ("h", 4.0)
    samples = [(one.time - begun, one.cpu_seconds) for one in a.samples]
    assert samples == [(t, t) for t in (0, 2, 4, 6, 8)]
    points = [(time - begun, round(value, 6)) for time, value in a.series["loss"]]
    assert points == [(2, 0.8), (4, 0.6), (6, 0.4), (8, 0.2), (10, 0)]
    assert a.labels["dltools.target"] == "0.4"
    assert (b.threads, b.started - begun, len(b.samples)) == (2, 4, 1)
    assert len({a.id, b.id}) == 2
    assert all(len(one.id) == 64 for one in (a, b))
