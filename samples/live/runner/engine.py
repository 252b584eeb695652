"""Containers of a measurement, by the docker command. All carry the label LABEL."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dltools.engine.containers import engine_time

LABEL = "dltools-live"


class EngineError(Exception):
    """The docker command failed; the message is its own."""


@dataclass(frozen=True)
class State:
    """`started` and `ended`: None where the container did not."""

    started: datetime | None
    ended: datetime | None
    exit_code: int


def docker(*arguments: str) -> str:
    """Return what the docker command prints. Raises `EngineError`."""
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError(f"docker {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def begin(*arguments: str) -> subprocess.Popen[str]:
    """Start the docker command; `finish` waits for it."""
    return subprocess.Popen(["docker", *arguments], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def finish(command: subprocess.Popen[str]) -> None:
    """Wait for a docker command. Raises `EngineError`."""
    _, error = command.communicate()
    if command.returncode:
        raise EngineError(f"docker: {error.strip()}")


def create(image: str, command: Sequence[str], name: str, labels: Mapping[str, str]) -> str:
    """Return the id of a new container that does not run yet."""
    said = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
    return docker("create", "--name", name, *said, image, *command)


def remove(ids: Sequence[str]) -> None:
    """Remove containers, running or not."""
    if ids:
        docker("rm", "--force", *ids)


def state(container: str) -> State:
    """Return whether and when a container ran."""
    shown = "{{.State.StartedAt}} {{.State.FinishedAt}} {{.State.ExitCode}}"
    started, ended, code = docker("inspect", "--format", shown, container).split()
    return State(engine_time(started), engine_time(ended), int(code))


def leftovers() -> list[str]:
    """Return the ids of all containers of measurements."""
    return docker("ps", "--all", "--quiet", "--filter", f"label={LABEL}").split()


def foreign() -> list[str]:
    """Return the names of running containers that are of no measurement."""
    lines = docker("ps", "--format", '{{.Names}} {{.Label "' + LABEL + '"}}').splitlines()
    return [words[0] for line in lines if len(words := line.split()) == 1]
