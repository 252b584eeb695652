"""Jobs of public cluster traces: a GPU of a trace becomes a CPU here.

Pollux (Qiao et al., OSDI 2021): name, time, application and replicas. How long an application
runs is taken from the profiles that the authors published. Philly (Jeon et al., ATC 2019): a table
of run times. Alibaba's GPU trace of 2023 (Weng et al., ATC 2023): a row per pod, with the CPUs that
it asked for and the times when it was scheduled and deleted.
"""

import csv
import io
import math
import random

from dltools.sim.workload import Job

GPU_SECONDS = {
    "cifar10": 4_060.0,
    "bert": 13_600.0,
    "deepspeech2": 19_400.0,
    "yolov3": 33_700.0,
    "imagenet": 532_000.0,
    "ncf": 1_800.0,
}
"""GPU seconds of each application: the iterations of the smallest batch, multiplied by the time of
a step on one GPU without synchronisation (petuum/adaptdl, simulator/traces and applications.py:
39,070 of 0.104 s; 14,774 of 0.92 s; 28,539 of 0.68 s; 103,444 of 0.326 s; 576,526 of 0.92 s). The
step time of ncf is not published: its value is the middle of its class, which is up to an hour."""


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def pollux_jobs(text: str) -> list[Job]:
    return [
        Job(
            row["name"],
            float(row["time"]),
            GPU_SECONDS[row["application"]],
            int(row["num_replicas"]),
            spin=0.0,
        )
        for row in _rows(text)
    ]


def philly_jobs(text: str, seed: int) -> list[Job]:
    """Return a job of one thread for each run time, in an order that the seed decides."""
    times = [time for row in _rows(text) if 0 < (time := float(row["runtime"])) < math.inf]
    random.Random(seed).shuffle(times)
    width = len(str(len(times)))
    return [Job(f"job-{k:0{width}d}", 0.0, time, 1, spin=0.0) for k, time in enumerate(times)]


def alibaba_jobs(text: str) -> list[Job]:
    """Return the pods that ran to their end."""
    jobs = []
    for row in _rows(text):
        if not (row["scheduled_time"] and row["deletion_time"]):
            continue
        span = float(row["deletion_time"]) - float(row["scheduled_time"])
        cores, memory = float(row["cpu_milli"]) / 1000, int(row["memory_mib"]) << 20
        if span > 0 and cores > 0:
            threads, begun = max(1, math.ceil(cores)), float(row["creation_time"])
            jobs.append(Job(row["name"], begun, cores * span, threads, memory=memory, spin=0.0))
    return jobs
