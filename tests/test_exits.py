"""Each exit code, really produced, with one line on standard error and no traceback."""

from __future__ import annotations

import http.server
import json
import os
import pty
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from observing import container, node, point

from dltools.cli.exits import Exit
from dltools.streams import Format, to_table, writer

COVERED: set[int] = set()


def command(tool: str, *arguments: str, before: str = "") -> list[str]:
    code = (
        f"import sys; sys.argv[0]='dl-{tool}'\n{before}\n"
        f"from dltools.cli.{tool} import main; main()"
    )
    return [sys.executable, "-c", code, *arguments]


def check(
    exit_: Exit, tool: str, *arguments: str, data: bytes = b"", before: str = "", **env: str
) -> str:
    done = subprocess.run(
        command(tool, *arguments, before=before), input=data, capture_output=True, timeout=60,
        env={**os.environ, "DLTOOLS_PLUGINS": "", **env},
    )  # fmt: skip
    error = done.stderr.decode()
    assert done.returncode == exit_, error
    assert "Traceback" not in error
    if exit_ is not Exit.USAGE:
        assert error.count("\n") == (0 if exit_ is Exit.OK else 1)
    COVERED.add(exit_)
    return error


def observations(format_: Format = Format.PARQUET) -> bytes:
    import io

    out = io.BytesIO()
    made = writer(format_, out)
    made.write(to_table([node(0), container(0, "a", 1.0), point(0, "a", 1.0)]))
    made.close()
    return out.getvalue()


def plan(host: str = "node", container_id: str = "a" * 64) -> bytes:
    records = [
        {"kind": "plan", "v": 1, "policy": "p", "at": "2026-01-01T00:00:00.000000Z"},
        {"kind": "action", "id": 1, "op": "update", "host": host,
         "container": {"id": container_id, "name": "job"}, "set": {"cpus": 0.5}, "expect": {}},
        {"kind": "end", "actions": 1},
    ]  # fmt: skip
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


class FakeEngine(http.server.BaseHTTPRequestHandler):
    """An engine with one container, which refuses every update."""

    def answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path.endswith("/version"):
            self.answer(200, {"ApiVersion": "1.41"})
        elif self.path.endswith("/info"):
            self.answer(200, {"ID": "fake", "Name": "node", "NCPU": 2, "MemTotal": 1 << 30})
        elif "b" * 64 in self.path or self.path.endswith("/containers/job/json"):
            self.answer(404, {"message": "No such container"})
        else:
            self.answer(200, {
                "Id": "a" * 64, "Name": "/job", "State": {"Status": "running", "Pid": 0},
                "Config": {"Image": "x"}, "HostConfig": {},
            })  # fmt: skip

    def do_POST(self) -> None:
        self.answer(500, {"message": "no update today"})

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[dict[str, str]]:
    path = tmp_path / "docker.sock"

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

        def get_request(self) -> tuple[object, tuple[str, int]]:  # type: ignore[override]
            return self.socket.accept()[0], ("local", 0)

    with Server(str(path), FakeEngine) as server:  # type: ignore[arg-type]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"DOCKER_HOST": f"unix://{path}", "XDG_STATE_HOME": str(tmp_path)}
        server.shutdown()


def test_ok() -> None:
    check(Exit.OK, "plan", data=observations())
    check(Exit.OK, "plan", data=observations(Format.ARROW))
    check(Exit.OK, "plan", "--policies")


def test_partial_where_the_engine_refuses(fake: dict[str, str]) -> None:
    done = subprocess.run(
        command("apply"), input=plan(), capture_output=True, env={**os.environ, **fake}
    )
    assert done.returncode == Exit.PARTIAL, done.stderr
    assert done.stderr == b""
    result = json.loads(done.stdout)
    assert (result["status"], result["error"]) == ("failed", "no update today")
    COVERED.add(Exit.PARTIAL)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("probe", ["--bogus"]),
        ("probe", ["--count", "3"]),
        ("probe", ["-i", "soon"]),
        ("probe", ["-i", "0"]),
        ("plan", ["a", "b"]),
        ("apply", ["--offline"]),
        ("apply", ["--undo", "--restore"]),
    ],
)
def test_usage(tool: str, arguments: list[str]) -> None:
    check(Exit.USAGE, tool, *arguments)


@pytest.mark.parametrize("tool", ["plan", "apply"])
def test_usage_where_standard_input_is_a_terminal(tool: str) -> None:
    leader, follower = pty.openpty()
    done = subprocess.run(command(tool), stdin=follower, capture_output=True, timeout=60)
    os.close(leader)
    os.close(follower)
    assert done.returncode == Exit.USAGE
    assert b"Usage" in done.stderr
    COVERED.add(Exit.USAGE)


@pytest.mark.parametrize(
    ("tool", "data"),
    [
        ("plan", b""),
        ("plan", b"\x89PNG\r\n\x1a\n" + bytes(100)),
        ("plan", observations()[:-20]),
        ("apply", b""),
        ("apply", b"not a plan\n"),
        ("apply", plan().rpartition(b'{"kind": "end"')[0]),
    ],
)
def test_bad_data(tool: str, data: bytes, fake: dict[str, str]) -> None:
    check(Exit.DATA, tool, data=data, **fake)


@pytest.mark.parametrize("tool", ["probe", "apply"])
def test_no_engine(tool: str, tmp_path: Path) -> None:
    where = {"DOCKER_HOST": "unix:///nowhere/docker.sock", "XDG_STATE_HOME": str(tmp_path)}
    error = check(Exit.UNAVAILABLE, tool, data=plan(), **where)
    assert "unix:///nowhere/docker.sock" in error


def test_a_bug_is_called_a_bug() -> None:
    broken = "import dltools.planner; dltools.planner.Fold.plan = lambda *_, **__: 1 / 0"
    error = check(Exit.SOFTWARE, "plan", data=observations(), before=broken)
    assert "DLTOOLS_DEBUG=1" in error


def test_output_that_cannot_be_created(fake: dict[str, str], tmp_path: Path) -> None:
    missing = str(tmp_path / "missing" / "file")
    check(Exit.CANT_CREATE, "plan", "--save-state", missing, data=observations())
    (tmp_path / "dltools").write_text("in the way")
    check(Exit.CANT_CREATE, "apply", data=plan(), **fake)


def test_input_and_output_errors(tmp_path: Path) -> None:
    check(Exit.IO, "plan", str(tmp_path))
    check(Exit.IO, "plan", str(tmp_path / "missing"))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("plan"), input=observations(), stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == Exit.IO
    assert done.stderr.count(b"\n") == 1


def test_stale(fake: dict[str, str]) -> None:
    done = subprocess.run(
        command("apply"), input=plan(container_id="b" * 64), capture_output=True,
        env={**os.environ, **fake},
    )  # fmt: skip
    assert done.returncode == Exit.RETRY, done.stderr
    assert json.loads(done.stdout)["error"] == "gone"
    COVERED.add(Exit.RETRY)


def test_locked(fake: dict[str, str]) -> None:
    holder = subprocess.Popen(command("apply"), stdin=subprocess.PIPE, env={**os.environ, **fake})
    try:
        lock = Path(fake["XDG_STATE_HOME"]) / "dltools" / "apply.lock"
        for _ in range(200):
            if lock.exists():
                break
            time.sleep(0.05)
        time.sleep(0.2)
        assert "try again" in check(Exit.RETRY, "apply", data=plan(), **fake)
    finally:
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(30)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root in order to become nobody")
@pytest.mark.usefixtures("fake")
def test_permission(tmp_path: Path) -> None:
    where = tmp_path / "private" / "docker.sock"
    where.parent.mkdir()
    (tmp_path / "docker.sock").rename(where)
    where.parent.chmod(0o700)
    become = (  # what nobody could not import from root's home any more
        "import dltools.cli.probe, dltools.probe.sampler, docker.api.client, docker.context\n"
        "import dltools.probe.progress, requests.adapters, os, http.client, encodings.idna\n"
        "os.setuid(65534)"
    )
    error = check(Exit.PERMISSION, "probe", before=become, DOCKER_HOST=f"unix://{where}")
    assert "group docker" in error


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("plan", ["--policy", "nope"]),
        ("plan", ["--set", "nope=1"]),
        ("plan", ["--set", "alpha"]),
        ("plan", ["--set", "alpha=2"]),
        ("plan", ["--set", "itval=often"]),
        ("plan", ["--realize", "magic"]),
        ("plan", ["--params", "/nowhere.toml"]),
    ],
)
def test_configuration(tool: str, arguments: list[str]) -> None:
    check(Exit.CONFIG, tool, *arguments, data=observations())


def test_a_pattern_that_is_none(fake: dict[str, str]) -> None:
    check(Exit.CONFIG, "probe", "--pattern", "(", **fake)


@pytest.mark.parametrize(
    ("number", "exit_"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)]
)
def test_signals(number: signal.Signals, exit_: Exit) -> None:
    process = subprocess.Popen(
        command("plan"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(observations(Format.ARROW)[:-8])  # a stream that goes on
    process.stdin.flush()
    process.stdout.readline()  # it has begun
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (exit_, b"")
    COVERED.add(exit_)


def test_a_reader_that_goes_away() -> None:
    process = subprocess.Popen(
        command("plan", "--every"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.write(observations())
    process.stdin.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(30) == Exit.PIPE
    COVERED.add(Exit.PIPE)


def test_every_code_was_produced_above() -> None:
    skipped = {Exit.PERMISSION} if os.geteuid() else set()
    assert {int(code) for code in Exit} - skipped == {int(code) for code in COVERED} - skipped


def test_a_dry_run_that_asks_no_engine_changes_none() -> None:
    done = subprocess.run(
        command("apply", "--dry-run", "--offline"), input=plan(), capture_output=True, check=True,
        env={**os.environ, "DOCKER_HOST": "unix:///nowhere"},
    )  # fmt: skip
    assert json.loads(done.stdout)["status"] == "planned"
