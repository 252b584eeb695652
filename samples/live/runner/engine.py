"""Containers of a measurement, by the docker command. All carry the label LABEL."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from dltools.engine.docker.answers import engine_time

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
    return subprocess.Popen(
        ["docker", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(command: subprocess.Popen[str]) -> None:
    """Wait for a docker command. Raises `EngineError`."""
    _, error = command.communicate()
    if command.returncode:
        raise EngineError(f"docker: {error.strip()}")


def create(image: str, command: Sequence[str], name: str, labels: Mapping[str, str]) -> str:
    """Return the id of a new container that does not run yet."""
    said = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
    with _uninterrupted():
        return docker("create", "--pull", "never", "--name", name, *said, image, *command)


def remove_all(label: str = LABEL) -> None:
    """Remove all containers with a label, by default those of all measurements."""
    with _uninterrupted():
        found = docker("ps", "--all", "--quiet", "--filter", f"label={label}").split()
        if found:
            docker("rm", "--force", *found)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let signals wait, for the docker command too: the engine goes on where a command stops."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def state(container: str) -> State:
    """Return whether and when a container ran."""
    shown = "{{.State.StartedAt}} {{.State.FinishedAt}} {{.State.ExitCode}}"
    started, ended, code = docker("inspect", "--format", shown, container).split()
    return State(engine_time(started), engine_time(ended), int(code))


def foreign() -> list[str]:
    """Return the names of running containers that are of no measurement."""
    lines = docker("ps", "--format", '{{.Names}} {{.Label "' + LABEL + '"}}').splitlines()
    return [words[0] for line in lines if len(words := line.split()) == 1]
