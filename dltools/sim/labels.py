"""The labels and the role of a simulated job, as its container would have them."""

from __future__ import annotations

import json

from dltools.labels import EPOCHS, FINAL, METRIC, OBJECTIVE, PROTECT, QOE, TARGET
from dltools.observations.roles import NO_SIGN, Judgement
from dltools.sim.workload import Job


def labels_of(job: Job, *, clairvoyant: bool = False) -> dict[str, str]:
    """Return a job's targets, and with `clairvoyant` how many epochs it will train."""
    found = {PROTECT: "true"} if job.protected else {}
    if job.serves:
        return found if job.qoe is None else {**found, QOE: repr(job.qoe)}
    if job.first is not None:
        objective = "min" if job.curve.falls else "max"
        found |= {METRIC: job.curve.metric, TARGET: repr(job.first), OBJECTIVE: objective}
        if job.final is not None:
            found[FINAL] = repr(job.final)
    if clairvoyant:
        found[EPOCHS] = str(job.epochs)
    return found


def role_of(job: Job, *, is_remote: bool = False) -> Judgement:
    """Return what dl-probe would say that a job's container is, before it has reported; if it
    `is_remote`, dl-probe cannot look into it."""
    if is_remote and not job.reports:
        return NO_SIGN
    return Judgement(job.acts_as, "simulated, silent" if job.silent else "simulated")


def labels_text(job: Job) -> str | None:
    """Return a job's labels as a container row has them, None where there are none."""
    found = labels_of(job)
    return json.dumps(found) if found else None
