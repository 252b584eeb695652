"""Tools run as forks of a process that has imported them already: what `make check` uses.

A fork is a process of its own, with its own descriptors, environment, directory and exit code. It
only saves the imports, which take most of a short run.
"""

import atexit
import contextlib
import functools
import gc
import json
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

_USED = (
    "pyarrow.parquet",
    "pyarrow.csv",
    "pyarrow.ipc",
    "pyarrow.compute",
    "rich.table",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "importlib.metadata",
    "tomllib",
)
"""What the tools import when they need it."""

STREAMS = ("stdin", "stdout", "stderr")
FORKS_TAKE = {"cwd", *STREAMS}
"""What a fork can be given; other arguments of `subprocess.run` it does not know."""

_LARGEST = 1 << 20


class _NoPandas:
    """Hides pandas: Arrow imports it where it is installed, no tool uses it, and each fork would
    copy it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)


class ForkServer:
    """A process whose forks run tools, one at a time."""

    def __init__(self) -> None:
        """Start it; it imports while the first tests run."""
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = _start("serve", its)
        self._socket = mine
        self._lock = threading.Lock()
        atexit.register(self.close)

    def run(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        input: bytes,
        env: Mapping[str, str],
        timeout: float,
        cwd: str | Path | None = None,
        **given: Any,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a tool to its end, as `subprocess.run` does, with pipes where no stream is `given`.

        Raises `subprocess.TimeoutExpired`."""
        asked = {
            "name": name,
            "arguments": list(arguments),
            "env": dict(env),
            "cwd": str(cwd or Path.cwd()),
        }
        with self._lock:
            said: dict[str, bytes] = {}
            theirs, threads = [], []
            for stream in STREAMS:
                if stream in given:
                    handle = given[stream]
                    theirs.append(os.dup(handle if isinstance(handle, int) else handle.fileno()))
                    continue
                read, write = os.pipe()
                theirs.append(read if stream == "stdin" else write)
                work = (
                    threading.Thread(target=_feed, args=(write, input))
                    if stream == "stdin"
                    else threading.Thread(target=_drain, args=(read, stream, said))
                )
                threads.append(work)
            socket.send_fds(self._socket, [json.dumps(asked).encode()], theirs)
            for handle in theirs:
                os.close(handle)
            for thread in threads:
                thread.start()
            code = self._wait([name, *arguments], timeout)
            for thread in threads:
                thread.join()
            return subprocess.CompletedProcess(
                [name, *arguments], code, said.get("stdout"), said.get("stderr")
            )

    def _wait(self, command: list[str], timeout: float) -> int:
        pid = json.loads(self._socket.recv(_LARGEST))
        self._socket.settimeout(timeout)
        try:
            return int(json.loads(self._socket.recv(_LARGEST)))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self._socket.settimeout(None)
            self._socket.recv(_LARGEST)
            raise subprocess.TimeoutExpired(command, timeout) from None
        finally:
            self._socket.settimeout(None)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


def _start(work: str, its: socket.socket) -> subprocess.Popen[bytes]:
    """Start a process that does one of the functions below with a socket."""
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, "-c", f"from helpers.forks import {work}; {work}({its.fileno()})"],
        pass_fds=[its.fileno()],
        # OpenBLAS would start threads, which do not survive a fork.
        env=os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
    )


@contextlib.contextmanager
def listening() -> Iterator[str]:
    """Give the name of a socket at which `fork_client` gets forks, several at a time. They have
    its streams, and no signals that it gets: for lines of shell that run to their end."""
    name = f"dltools-tests-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as its:
        its.bind(f"\0{name}")
        its.listen(64)
        process = _start("listen", its)
        try:
            yield name
        finally:
            process.kill()
            process.wait()


def _feed(handle: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(handle, "wb") as file:
        file.write(data)


def _drain(handle: int, stream: str, said: dict[str, bytes]) -> None:
    with os.fdopen(handle, "rb") as file:
        said[stream] = file.read()


def serve(handle: int) -> None:
    """Fork for each request, until the other end is closed."""
    import_all()
    connection = socket.socket(fileno=handle)
    while True:
        data, handles, _, _ = socket.recv_fds(connection, _LARGEST, 3)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            leave(become(json.loads(data), handles))
        for one in handles:
            os.close(one)
        connection.send(json.dumps(pid).encode())
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(BrokenPipeError):
            connection.send(json.dumps(code).encode())


def listen(handle: int) -> None:
    """Fork for each client, which hears how that has ended, as long as the parent lives."""
    import_all()
    server = socket.socket(fileno=handle)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    server.settimeout(1.0)
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            client, _ = server.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server.close()
            data, handles, _, _ = socket.recv_fds(client, _LARGEST, 3)
            leave(become(marshal.loads(data), handles), client)
        client.close()


def import_all() -> None:
    """Import what the tools import, so that a fork need not."""
    from importlib import import_module
    from pkgutil import walk_packages

    import dltools

    sys.meta_path.insert(0, _NoPandas())
    ours = [module.name for module in walk_packages(dltools.__path__, "dltools.")]
    for name in (*ours, *_USED):
        with contextlib.suppress(ImportError):  # the tool says what is missing
            import_module(name)
    _make_commands()
    gc.freeze()  # a fork that collects would copy all these pages


def _make_commands() -> None:
    """Make the tools' commands once: Typer does so at each call, which takes as long as a fork."""
    from importlib import import_module

    import typer.main

    typer.main.get_command = functools.cache(typer.main.get_command)
    for tool in ("probe", "plan", "apply", "sim", "report"):
        typer.main.get_command(import_module(f"dltools.cli.{tool}").app)


def become(asked: Mapping[str, Any], handles: Sequence[int]) -> int:
    """Be a tool, with its descriptors, streams, environment, directory and arguments; return its
    exit code."""
    from importlib import import_module

    for number, one in enumerate(handles):
        os.dup2(one, number)
        os.close(one)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    path = asked["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [entry for entry in path if entry and entry not in sys.path]
    for number, name in enumerate(STREAMS):
        old = getattr(sys, name)
        mode, lines = ("w", 1 if number == 2 else -1) if number else ("r", -1)
        new = open(number, mode, lines, old.encoding, old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, new)
    sys.argv = [asked["name"], *asked["arguments"]]
    try:
        import_module(f"dltools.cli.{asked['name'].removeprefix('dl-')}").main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def leave(code: int, client: socket.socket | None = None) -> NoReturn:
    """End as Python does, but for freeing each object: that would copy the server's memory. Tell a
    client the exit code."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
    except OSError:
        code = 120
    if client is not None:
        client.send(str(code).encode())
    os._exit(code)
