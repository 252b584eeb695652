"""Files that appear whole or not at all, and locks that die with their holder."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dltools.errors import OutputError, RetryError
from dltools.whole_files import atomic_file, locked


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_appears_with_its_content(tmp_path) -> None:
    with atomic_file(tmp_path / "out") as file:
        file.write(b"\x00\r\n\xff")
    assert (tmp_path / "out").read_bytes() == b"\x00\r\n\xff"
    assert _names(tmp_path) == ["out"]


def test_nothing_appears_before_the_end(tmp_path) -> None:
    with atomic_file(tmp_path / "out") as file:
        file.write(b"half")
        file.flush()
        assert not (tmp_path / "out").exists()


def test_the_old_content_stays_until_the_end(tmp_path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with atomic_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_a_reader_of_the_old_file_keeps_it(tmp_path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        with atomic_file(path) as file:
            file.write(b"new and longer")
        assert reader.read() == b"old"


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("existed", [False, True])
def test_a_failure_leaves_nothing_behind(tmp_path, error, existed) -> None:
    path = tmp_path / "out"
    if existed:
        path.write_bytes(b"old")
    with pytest.raises(error), atomic_file(path) as file:
        file.write(b"half")
        raise error
    assert _names(tmp_path) == (["out"] if existed else [])
    assert not existed or path.read_bytes() == b"old"


def test_a_failure_to_sync_leaves_nothing_behind(tmp_path, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), atomic_file(tmp_path / "out") as file:
        file.write(b"x")
    assert _names(tmp_path) == []


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_is_kept(tmp_path, mask, mode) -> None:
    with _umask(mask):
        with atomic_file(tmp_path / "out") as file:
            file.write(b"x")
        assert os.umask(mask) == mask
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == mode


def test_a_staged_file_is_hidden_and_private(tmp_path) -> None:
    with _umask(0), atomic_file(tmp_path / "out"):
        (staged,) = tmp_path.iterdir()
        assert staged.name.startswith(".")
        assert stat.S_IMODE(staged.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["missing/out", "file/out", "x" * 300])
def test_a_place_that_cannot_be_is_an_output_error(tmp_path, name) -> None:
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / name
    with pytest.raises(OutputError, match=r"^cannot create .*: \S"), atomic_file(path):
        pytest.fail("the block must not run")
    assert _names(tmp_path) == ["file"]


def test_a_directory_in_the_way_is_an_output_error(tmp_path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="cannot create"), atomic_file(tmp_path / "out") as file:
        file.write(b"x")
    assert _names(tmp_path) == ["out"]


def test_two_writers_of_one_file_do_not_mix(tmp_path) -> None:
    path = tmp_path / "out"
    with atomic_file(path) as first, atomic_file(path) as second:
        first.write(b"1" * 1000)
        second.write(b"2" * 10)
    assert path.read_bytes() == b"1" * 1000
    assert _names(tmp_path) == ["out"]


_HOLDER = """
import sys
from pathlib import Path
from dltools.whole_files import locked
with locked(Path(sys.argv[1]), "test"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Start a process that holds a lock until its standard input is closed."""
    started: list[subprocess.Popen[str]] = []

    def start(path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def is_free(path: Path) -> bool:
    try:
        with locked(path, "test"):
            return True
    except RetryError:
        return False


def test_a_lock_held_by_another_process_is_an_error_to_try_again(tmp_path, hold) -> None:
    path = tmp_path / "apply.lock"
    holder = hold(path)
    with pytest.raises(RetryError, match=r"apply\.lock.*try again"), locked(path, "test"):
        pytest.fail("the block must not run")
    holder.communicate()
    assert is_free(path)


def test_a_lock_names_its_holder(tmp_path, hold) -> None:
    path = tmp_path / "apply.lock"
    holder = hold(path)
    with (
        pytest.raises(RetryError, match=rf"process {holder.pid}: .* \(it holds"),
        locked(path, "test"),
    ):
        pytest.fail("the block must not run")


def test_a_lock_holds_on_a_full_disk(tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    path = tmp_path / "apply.lock"
    with (
        locked(path, "test"),
        pytest.raises(RetryError, match=r"another test is running \(it holds"),
        locked(path, "test"),
    ):
        pytest.fail("the block must not run")


def test_a_lock_is_free_once_its_holder_is_killed(tmp_path, hold) -> None:
    path = tmp_path / "apply.lock"
    holder = hold(path)
    holder.send_signal(signal.SIGKILL)
    assert holder.wait() == -signal.SIGKILL
    assert is_free(path)


def test_a_lock_tells_that_its_last_holder_was_killed(tmp_path, hold) -> None:
    path = tmp_path / "apply.lock"
    with locked(path, "test") as holder_died:
        assert not holder_died
    for end, expected in ((subprocess.Popen.kill, True), (subprocess.Popen.communicate, False)):
        holder = hold(path)
        end(holder)
        holder.wait()
        with locked(path, "test") as holder_died:
            assert holder_died is expected


def test_a_lock_is_not_taken_twice_in_one_process(tmp_path) -> None:
    path = tmp_path / "lock"
    with locked(path, "test"):
        assert not is_free(path)
        assert not is_free(path), "a refusal must not free the lock"
    assert is_free(path)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_lock_is_freed_by_a_failure(tmp_path, error) -> None:
    with pytest.raises(error), locked(tmp_path / "lock", "test"):
        raise error
    assert is_free(tmp_path / "lock")


def test_a_child_does_not_inherit_a_lock(tmp_path) -> None:
    path = tmp_path / "lock"
    with locked(path, "test"):
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    try:
        assert is_free(path)
        assert child.poll() is None
    finally:
        child.communicate()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path) -> None:
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "lock").symlink_to("precious")
    with pytest.raises(OutputError, match="cannot create"), locked(tmp_path / "lock", "test"):
        pytest.fail("the block must not run")
    assert (tmp_path / "precious").read_text() == "keep"


def test_locks_of_different_files_are_independent(tmp_path) -> None:
    with locked(tmp_path / "a", "test"):
        assert not is_free(tmp_path / "a")
        assert is_free(tmp_path / "b")


def test_a_lock_makes_its_directories(tmp_path) -> None:
    with locked(tmp_path / "a" / "b" / "lock", "test"):
        assert (tmp_path / "a" / "b" / "lock").exists()


@pytest.mark.parametrize("name", ["file/lock", "directory"])
def test_a_lock_that_cannot_be_made_is_an_output_error(tmp_path, name) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    with pytest.raises(OutputError, match="cannot create"), locked(tmp_path / name, "test"):
        pytest.fail("the block must not run")
