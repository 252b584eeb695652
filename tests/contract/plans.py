"""Plans for the containers of tests."""

import datetime
from typing import Any

from contract.subject import Job, Subject
from helpers.containers import Containers
from helpers.containers import Job as Made

from dltools.actions.plan_lines import dump_plan
from dltools.actions.plans import Action, Op, Plan
from dltools.notation.times import format_time

Engines = Subject | Containers | Made
Jobs = Job | Made


def plan(subject: Engines, *actions: tuple[Op, Jobs, dict[str, Any]], live: bool = False) -> bytes:
    host, now = subject.engine.host, format_time(datetime.datetime.now(datetime.UTC))
    made = tuple(
        Action(number, op, host, job.id, job.name, wanted, {}, "test", to=_to(op))
        for number, (op, job, wanted) in enumerate(actions, 1)
    )
    text = dump_plan(Plan("test", now, {}, {}, None, made)).encode()
    return text.replace(b'"kind":"plan"', b'"kind":"plan","live":true', 1) if live else text


def _to(op: Op) -> str | None:
    return "elsewhere" if op is Op.MIGRATE else None


def update(subject: Engines, job: Jobs, live: bool = False, **wanted: Any) -> bytes:
    return plan(subject, (Op.UPDATE, job, wanted), live=live)


def turns(subject: Engines, *jobs: Jobs, seconds: float = 0.5, live: bool = False) -> bytes:
    return plan(
        subject,
        *(
            (Op.ROTATE, job, {"group": number, "turn_s": seconds})
            for number, job in enumerate(jobs)
        ),
        live=live,
    )


def lease(subject: Subject) -> tuple[str, ...]:
    """Return the options without which the engine takes no single plan."""
    return ("--lease", "10m") if subject.traits.can.leases_only else ()
