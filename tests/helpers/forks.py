"""Tools run as forks of a process that has imported them already: what `make check` uses.

A fork is a process of its own, with its own descriptors, environment, directory and exit code. It
only saves the imports, which take most of a short run.
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SERVER = "from helpers.forks import serve; serve({handle})"
_USED = ("pyarrow.parquet", "pyarrow.csv", "pyarrow.ipc", "pyarrow.compute", "pandas", "rich.table",
         "matplotlib.figure", "matplotlib.backends.backend_agg", "importlib.metadata", "tomllib",
         "re2")  # fmt: skip
"""What the tools import when they need it."""

_LARGEST = 1 << 20


class ForkServer:
    """A process whose forks run tools, one at a time."""

    def __init__(self) -> None:
        """Start it; it imports while the first tests run."""
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.pathsep.join(filter(None, sys.path))
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVER.format(handle=its.fileno())],
                pass_fds=[its.fileno()],
                # OpenBLAS would start threads, which do not survive a fork.
                env=os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
            )
        self._socket = mine
        self._lock = threading.Lock()

    def run(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        input: bytes,
        env: Mapping[str, str],
        timeout: float,
        cwd: str | Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a tool to its end, as `subprocess.run` does. Raises `subprocess.TimeoutExpired`."""
        asked = {"name": name, "arguments": list(arguments), "env": dict(env),
                 "cwd": str(cwd or Path.cwd())}  # fmt: skip
        with self._lock:
            stdin, feed = os.pipe()
            out, stdout = os.pipe()
            err, stderr = os.pipe()
            theirs = array.array("i", [stdin, stdout, stderr])
            socket.send_fds(self._socket, [json.dumps(asked).encode()], list(theirs))
            for handle in theirs:
                os.close(handle)
            said: dict[int, bytes] = {}
            threads = [
                threading.Thread(target=_feed, args=(feed, input)),
                *(threading.Thread(target=_drain, args=(one, said)) for one in (out, err)),
            ]
            for thread in threads:
                thread.start()
            pid = json.loads(self._socket.recv(_LARGEST))
            self._socket.settimeout(timeout)
            try:
                code = json.loads(self._socket.recv(_LARGEST))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._socket.settimeout(None)
                self._socket.recv(_LARGEST)
                raise subprocess.TimeoutExpired([name, *arguments], timeout) from None
            for thread in threads:
                thread.join()
            return subprocess.CompletedProcess([name, *arguments], code, said[out], said[err])

    def close(self) -> None:
        """Let the server end."""
        self._socket.close()
        self._process.wait()


def _feed(handle: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(handle, "wb") as file:
        file.write(data)


def _drain(handle: int, said: dict[int, bytes]) -> None:
    with os.fdopen(handle, "rb") as file:
        said[handle] = file.read()


def serve(handle: int) -> None:
    """Fork for each request; return, in the fork alone, to end as a tool does."""
    from importlib import import_module
    from pkgutil import walk_packages

    import dltools

    ours = [module.name for module in walk_packages(dltools.__path__, "dltools.")]
    for name in (*ours, *_USED):
        with contextlib.suppress(ImportError):  # the tool says what is missing
            import_module(name)
    gc.freeze()  # a fork that collects would copy all these pages
    connection = socket.socket(fileno=handle)
    while True:
        data, handles, _, _ = socket.recv_fds(connection, _LARGEST, 3)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become(json.loads(data), handles)
            return
        for one in handles:
            os.close(one)
        connection.send(json.dumps(pid).encode())
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(BrokenPipeError):
            connection.send(json.dumps(code).encode())


def _become(asked: Mapping[str, Any], handles: Sequence[int]) -> None:
    """Be a tool: its descriptors, streams, environment, directory and arguments."""
    from importlib import import_module

    for number, one in enumerate(handles):
        os.dup2(one, number)
        os.close(one)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    path = asked["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [entry for entry in path if entry and entry not in sys.path]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        mode, lines = ("w", 1 if number == 2 else -1) if number else ("r", -1)
        new = open(number, mode, lines, old.encoding, old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, new)
    sys.argv = [asked["name"], *asked["arguments"]]
    import_module(f"dltools.cli.{asked['name'].removeprefix('dl-')}.command").main()
