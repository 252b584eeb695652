"""The tools as subprocesses, run from this checkout by this interpreter."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from helpers.forks import FORKS_TAKE, ForkServer

import dltools

_ROOT = str(Path(dltools.__file__).parents[1])
_CLIENT = Path(__file__).with_name("fork_client.py")
TOOLS = ("dl-probe", "dl-plan", "dl-apply", "dl-sim", "dl-report")


FORKED = os.environ.get("DLTOOLS_TESTS") != "processes"
"""Whether a tool that runs to its end is a fork of a process that has imported all: see `forks`."""

_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_")
"""What Python, and the loader before it, read only at the start."""


class _Forks(ForkServer):
    def __init__(self) -> None:
        self.at_start = _at_start(environment())
        super().__init__()


@cache
def _forks() -> _Forks:
    return _Forks()


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a fork would come too late for."""
    return {
        key: value
        for key, value in env.items()
        if key.startswith(_AT_START) and key != "PYTHONPATH"
    }


def command(name: str, *arguments: object) -> list[str]:
    module = name.removeprefix("dl-")
    code = f"import sys; sys.argv[0] = '{name}'; from dltools.cli.{module} import main; main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def write_scripts(
    directory: Path, before: Mapping[str, str] | None = None, server: str = ""
) -> None:
    """Write a script for each tool, which goes by its name. `before`: lines of shell by tool.
    `server`: where they get forks, by the name of its socket."""
    directory.mkdir(exist_ok=True)
    for name in TOOLS:
        first = (before or {}).get(name, "")
        script = directory / name
        words = [sys.executable, "-SE", str(_CLIENT), server, name] if server else command(name)
        script.write_text(f'#!/bin/sh\n{first}exec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a tool: this process's without dltools' own variables, and with
    buffers as users have them. Tests at the same time share an engine."""
    dropped = ("DLTOOLS_", "PYTHONUNBUFFERED")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    path = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
    return kept | {"PYTHONPATH": path, "DLTOOLS_BESIDE": "any"} | changes


class Tools:
    """Runs tools and keeps account of those that still run."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes]] = []

    def __call__(
        self,
        name: str,
        *arguments: object,
        input: bytes = b"",
        env: dict[str, str] | None = None,
        timeout: float = 300,
        **how: Any,
    ) -> subprocess.CompletedProcess[bytes]:
        env = environment(**(env or {}))
        if FORKED and not how.keys() - FORKS_TAKE and _at_start(env) == _forks().at_start:
            done = _forks().run(
                name, [*map(str, arguments)], input=input, env=env, timeout=timeout, **how
            )
            done.args = command(name, *arguments)
            return done
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "input": input} | how
        if "stdin" in how:
            del streams["input"]
        return subprocess.run(command(name, *arguments), env=env, timeout=timeout, **streams)

    def status(self, *arguments: object, **how: Any) -> list[dict[str, Any]]:
        """Return what dl-apply --status says of each container that is changed."""
        words = ("--status", "--format", "jsonl", *arguments)
        return records(self("dl-apply", *words, **how).stdout)

    def begin(self, name: str, *arguments: object, **how: Any) -> subprocess.Popen[bytes]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | how
        process = subprocess.Popen(command(name, *arguments), env=environment(), **pipes)
        self._running.append(process)
        return process

    def shell(
        self, line: str, directory: Path, timeout: float = 300
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a line of bash in which the tools go by their own names."""
        process = self.begin_shell(line, directory)
        stdout, stderr = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(line, process.returncode, stdout, stderr)

    def begin_shell(self, line: str, directory: Path) -> subprocess.Popen[bytes]:
        """Start a line of bash in a process group of its own, as at a terminal."""
        write_scripts(directory)
        process = subprocess.Popen(
            ["bash", "-c", line],
            env=environment(PATH=f"{directory}{os.pathsep}{os.environ['PATH']}"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._running.append(process)
        return process

    def kill(self) -> None:
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(process.pid) == process.pid:
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.communicate()


def records(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def complaint(stderr: bytes) -> str:
    """Return the one line on standard error. Fails on a traceback, or on more lines."""
    lines = stderr.decode().splitlines()
    assert len(lines) == 1, stderr.decode()
    return lines[0]
