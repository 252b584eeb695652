"""dl-probe --doctor: what dltools can see and do here, what stands in its way, what to type next.

It changes nothing, and works without root as far as it can.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dltools.cli.destinations import make_console
from dltools.cli.exits import Exit
from dltools.cli.probe.doctor_on_sample import Finding, Health, of_sample
from dltools.cli.remarks import as_root
from dltools.engine import cgroup, state_folder
from dltools.engine.kernel_reading import ROOT
from dltools.engine.pauses import ELSEWHERE, why_no_pause
from dltools.engine.registry import open_engine
from dltools.errors import AccessError, DataError, DltoolsError
from dltools.labels import Role
from dltools.notation.resources import format_bytes
from dltools.observations.roles import Rules, parse_rule
from dltools.text import listed

if TYPE_CHECKING:
    from dltools.apply.changed_containers import ChangedContainer
    from dltools.cli.probe.request import Request
    from dltools.engine.interface import Engine
    from dltools.probe.sampler import Connector, Sampler

_COLOURS = {Health.OK: "green", Health.WARNING: "yellow", Health.FAILURE: "red"}
_CAPABILITIES = {"CAP_SYS_PTRACE": 1 << 19, "CAP_DAC_READ_SEARCH": 1 << 2}
"""Bits of CapEff."""

_FATES = {
    "held": (Health.OK, "a running dl-apply holds the settings of {}", "dl-apply --status"),
    "stopped": (Health.WARNING, "the dl-apply that holds {} is stopped (Ctrl-Z)", "fg"),
    "ends": (Health.OK, "the settings of {} end unless another plan comes", "dl-apply --status"),
    "left": (Health.WARNING, "a dl-apply that has ended left settings on {}", "dl-apply --undo"),
}
"""What becomes of the settings of changed containers."""

_WINDOW_S = 0.5
"""Time between two looks at the counters (s): over the life of a young job the processes that have
loaded and compiled count too."""


def examine(request: Request, make_sampler: Callable[[dict[str, Connector]], Sampler]) -> None:
    """Print the findings, and exit: with 0 if all is well, with 1 if there are warnings, with 77 if
    a permission is missing, with 69 after any other failure."""
    report = _Report(is_json=request.format.value == "jsonl")
    addresses = request.addresses()
    is_denied = False
    for address in addresses:
        where = f"{address.name}: " if len(addresses) > 1 else ""
        try:
            engine = open_engine(address)
        except DltoolsError as error:
            is_denied |= isinstance(error, AccessError)
            report.add(Finding(Health.FAILURE, f"{where}engine", str(error), _how_to_reach(error)))
            continue
        for finding in _of_engine(engine, request, make_sampler):
            report.add(Finding(finding.health, where + finding.subject, finding.text, finding.next))
    report.add(_of_rights())
    if Health.FAILURE in report.found:
        raise typer.Exit(Exit.PERMISSION if is_denied else Exit.UNAVAILABLE)
    if Health.WARNING in report.found:
        raise typer.Exit(Exit.PARTIAL)


class _Report:
    """Prints findings as they come, and keeps how bad they are."""

    def __init__(self, *, is_json: bool) -> None:
        self._console = None if is_json else make_console()
        self.found: set[Health] = set()

    def add(self, finding: Finding) -> None:
        self.found.add(finding.health)
        if self._console is None:
            record = {
                "status": finding.health.value,
                "subject": finding.subject,
                "text": finding.text,
                "next": finding.next or None,
            }
            print(json.dumps(record), flush=True)
            return
        from rich.text import Text

        line = Text(f"{finding.health.value:<8}", style=_COLOURS[finding.health])
        line.append(f"{finding.subject}: {finding.text}", style="default")
        if finding.next:
            line.append(f"  -> {finding.next}", style="bold")
        self._console.print(line, soft_wrap=True)


def _how_to_reach(error: DltoolsError) -> str:
    if isinstance(error, AccessError):
        return as_root("dl-probe", "--doctor")
    return "systemctl status docker" if "dockerd" in str(error) else "docker context ls"


def _of_engine(
    engine: Engine, request: Request, make_sampler: Callable[[dict[str, Connector]], Sampler]
) -> Iterator[Finding]:
    """Yield the findings about one engine, its containers and what dl-apply has changed there."""
    memory = format_bytes(engine.memory)
    text = f"{engine.version or 'answers'} on {engine.host}: {engine.cpus} CPUs, {memory}"
    yield Finding(Health.OK, "engine", text)
    lacking = [name for name in engine.capabilities.missing() if name != "move"]
    if lacking:
        text = f"dl-apply cannot change {', '.join(lacking)} here: {engine.capabilities.why}"
        yield Finding(Health.WARNING, "limits", text)
    rules = Rules(tuple(map(parse_rule, request.roles)))
    try:
        sampler = make_sampler({engine.host: lambda: engine})
        before = sampler.counters()
        time.sleep(_WINDOW_S)
        rows = sampler.sample()
    except DltoolsError as error:
        yield Finding(Health.FAILURE, "sample", str(error))
    else:
        yield from of_sample(engine, rows, rules, before)
        yield from _of_pauses(engine, rows)
    yield from _of_journal(engine, request)
    if engine.is_local:
        yield from _of_writer(engine)
        driver = f", driver {engine.cgroup_driver}" if engine.cgroup_driver else ""
        yield _of_cgroups(driver)


def _of_pauses(engine: Engine, rows: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield why trainings are never paused, though the engine could pause them."""
    for row in rows if engine.capabilities.pauses else ():
        if row.get("role") == Role.TRAINING and "pause" in (row.get("cannot") or ""):
            with suppress(DltoolsError):
                why = why_no_pause(engine.inspect(row["container_id"])) or ELSEWHERE
                yield Finding(Health.OK, str(row["container_name"]), f"never paused: {why}")


def _of_cgroups(driver: str) -> Finding:
    mounted = cgroup.mounts()
    versions = {2 if not mount.controllers else 1 for mount in mounted}
    if not versions:
        return Finding(Health.FAILURE, "cgroup", f"no cgroup mount is visible{driver}", "mount")
    # Version 2 beside version 1 holds no controllers: systemd keeps its units there.
    version = 1 if any("cpu" in mount.controllers for mount in mounted) else 2
    if not (ROOT / "proc/pressure/cpu").exists():
        text = f"version {version}{driver}; the kernel counts no pressure (PSI)"
        return Finding(Health.WARNING, "cgroup", text, "cat /proc/cmdline  # psi=1 turns it on")
    return Finding(Health.OK, "cgroup", f"version {version}{driver}; pressure is counted")


def _of_journal(engine: Engine, request: Request) -> Iterator[Finding]:
    """Yield what dl-apply has changed on an engine and not put back."""
    from dltools.apply.changed_containers import changed_containers, open_migrations

    directories = state_folder.state_directories(request.state_directory)
    try:
        changed = changed_containers(engine, directories)
    except DltoolsError as error:
        yield Finding(Health.FAILURE, "journal", str(error), "dl-apply --status")
        return
    yield from _of_changed(changed)
    if moving := open_migrations(directories):
        names = listed([migration.container_name for migration in moving])
        text = f"{names}: on the way to another host"
        yield Finding(Health.WARNING, "journal", text, "dl-apply --status")
    unreadable = [finding for directory in directories for finding in _of_directory(directory)]
    yield from unreadable
    if not (changed or moving or unreadable):
        yield Finding(Health.OK, "journal", f"dl-apply has left no changes on {engine.host}")


def _of_changed(changed: Sequence[ChangedContainer]) -> Iterator[Finding]:
    """Yield what becomes of the settings of changed containers."""
    for fate, (health, text, advice) in _FATES.items():
        if names := [container.name for container in changed if _fate(container) == fate]:
            yield Finding(health, "journal", text.format(listed(names)), advice)


def _fate(container: ChangedContainer) -> str:
    if container.run.is_alive:
        return "stopped" if container.run.is_stopped else "held"
    return "ends" if container.until else "left"


def _of_directory(directory: Path) -> Iterator[Finding]:
    """Yield what keeps a state directory from being read."""
    from dltools.engine.journal import Journal

    try:
        state_folder.check(directory)
        Journal(directory / "journal").all()
    except AccessError as error:
        if directory == state_folder.state_directory(None):
            yield Finding(Health.FAILURE, "state", str(error), f"ls -ld {directory}")
        else:
            yield Finding(Health.WARNING, "state", str(error), as_root("dl-probe", "--doctor"))
    except DataError as error:
        yield Finding(Health.FAILURE, "state", str(error), "dl-apply --status")


def _of_writer(engine: Engine) -> Iterator[Finding]:
    from dltools.apply.locks import writer_of

    if (writer := writer_of(engine)) is not None:
        text = f"a pipe is running: {writer}; another dl-apply is refused"
        yield Finding(Health.OK, "pipe", text, "dl-apply --status")


def _of_rights() -> Finding:
    """Return whether this user may look into the processes and files of containers."""
    held = 0
    with suppress(OSError, StopIteration, ValueError):
        lines = (ROOT / "proc/self/status").read_text().splitlines()
        held = int(next(line for line in lines if line.startswith("CapEff")).split()[1], 16)
    missing = [name for name, bit in _CAPABILITIES.items() if not held & bit]
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    if missing:
        text = f"{who} without {' and '.join(missing)}: cannot see files and runtimes in containers"
        return Finding(Health.WARNING, "rights", text, as_root("dl-probe", "--doctor"))
    return Finding(Health.OK, "rights", f"{who}: may look into files and processes")
