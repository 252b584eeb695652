"""Where state is kept, and its records, which only their owner can change."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.other_users import STRANGER, as_user, needs_root

from dltools.engine import state_folder
from dltools.engine.docker.addresses import default_address
from dltools.engine.state_folder import StateFolder, prepare
from dltools.errors import AccessError, ConfigError, DataError, OutputError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def folder(home: Path) -> StateFolder:
    return StateFolder(home / "journal")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_record_comes_back_until_it_is_removed(folder) -> None:
    assert (folder.names(), folder.read("a.json")) == ([], None)
    folder.write("b.json", b"2")
    folder.write("a.json", b"1")
    folder.write("a.json", b"\x00\xff")
    assert folder.names() == ["a.json", "b.json"]
    assert folder.read("a.json") == b"\x00\xff"
    for _ in range(2):
        folder.remove("a.json")
    assert folder.names() == ["b.json"]


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_only_the_owner_may_enter(folder, home, mask) -> None:
    before = os.umask(mask)
    try:
        folder.write("a.json", b"1")
        prepare(home.parent / "other")
    finally:
        os.umask(before)
    assert [mode(path) for path in (home, folder.path, home.parent / "other")] == [0o700] * 3
    assert mode(folder.path / "a.json") == 0o600


@pytest.mark.parametrize("what", ["home", "folder"])
@pytest.mark.parametrize("bits", [0o777, 0o775, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(folder, home, what, bits) -> None:
    folder.path.mkdir(parents=True)
    path = home if what == "home" else folder.path
    path.chmod(bits)
    uses = every_use(folder, home)
    for work in uses if what == "home" else uses[:-1]:
        with pytest.raises(AccessError, match="other users can write to it: chmod go-w"):
            work()
    path.chmod(0o755)
    folder.write("a.json", b"1")


def every_use(folder: StateFolder, home: Path) -> tuple[Callable[[], object], ...]:
    return (
        folder.names,
        lambda: folder.read("a.json"),
        lambda: folder.write("a.json", b"new"),
        lambda: folder.remove("a.json"),
        folder.remove_staged,
        lambda: prepare(home),
    )


@pytest.mark.parametrize("what", ["home", "folder"])
def test_directories_are_not_followed_through_links(folder, home, tmp_path, what) -> None:
    elsewhere = tmp_path / "elsewhere"
    StateFolder(elsewhere / "journal").write("a.json", b"precious")
    if what == "home":
        home.symlink_to(elsewhere)
    else:
        home.mkdir()
        folder.path.symlink_to(elsewhere / "journal")
    uses = every_use(folder, home)
    for work in uses if what == "home" else uses[:-1]:
        with pytest.raises(AccessError, match="a link, which is not followed"):
            work()
    assert (elsewhere / "journal" / "a.json").read_bytes() == b"precious"


def test_records_are_not_followed_through_links(folder, tmp_path) -> None:
    (tmp_path / "precious").write_bytes(b"keep")
    folder.write("b.json", b"1")
    (folder.path / "a.json").symlink_to(tmp_path / "precious")
    with pytest.raises(AccessError, match=r"a\.json: a link"):
        folder.read("a.json")
    folder.write("a.json", b"new")
    assert (folder.read("a.json"), (tmp_path / "precious").read_bytes()) == (b"new", b"keep")


@pytest.mark.parametrize("kind", ["pipe", "directory", "socket"])
def test_what_is_no_file_is_no_record(folder, kind) -> None:
    folder.write("b.json", b"1")
    path = folder.path / "a.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        os.mknod(path, stat.S_IFSOCK | 0o600)
    with pytest.raises(AccessError, match=r"a\.json: "):
        folder.read("a.json")


def test_a_record_without_end_is_refused(folder, monkeypatch) -> None:
    monkeypatch.setattr(state_folder, "_LONGEST", 1024)
    folder.write("a.json", b"x" * 1025)
    with pytest.raises(DataError, match="more than 1 KiB"):
        folder.read("a.json")


def test_what_a_killed_writer_had_begun_is_removed(folder) -> None:
    folder.remove_staged()
    folder.write("whole.json", b"1")
    kept = {folder.path / name for name in ("whole.json", ".hidden", "a.0123abcd")}
    for path in (*kept, folder.path / ".begun.json.0123abcd"):
        path.touch()
    folder.remove_staged()
    assert set(folder.path.iterdir()) == kept


def test_a_full_disk_leaves_the_old_record(folder, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    folder.write("a.json", b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write("a.json", b"new")
    assert [path.name for path in folder.path.iterdir()] == ["a.json"]
    assert folder.read("a.json") == b"old"


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_place_that_cannot_be_is_an_output_error(tmp_path, depth) -> None:
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / "file" / Path(*"ab"[:depth])
    for place in (StateFolder(path / "journal"), StateFolder(tmp_path / "file")):
        assert place.names() == []
        with pytest.raises(OutputError, match="cannot create"):
            place.write("a.json", b"1")


# Other users


@needs_root
@pytest.mark.parametrize("what", ["home", "folder", "record"])
def test_root_trusts_nobody_else_s_state(folder, home, what) -> None:
    folder.write("a.json", b"theirs")
    path = {"home": home, "folder": folder.path, "record": folder.path / "a.json"}[what]
    os.chown(path, STRANGER, STRANGER)
    uses = every_use(folder, home)
    uses = {"home": uses, "folder": uses[:-1], "record": uses[1:2]}[what]
    for work in uses:
        with pytest.raises(AccessError, match=rf"belongs to another user \({STRANGER}\)"):
            work()
    assert (folder.path / "a.json").read_bytes() == b"theirs"


def open_to_all(tmp_path: Path) -> list[Path]:
    """A test's folder, and those above that pytest makes, one more where tests run at once."""
    names = ("pytest-", "popen-")
    return [tmp_path, *(one for one in tmp_path.parents if one.name.startswith(names))]


@needs_root
def test_a_user_cannot_read_what_root_keeps(folder, tmp_path) -> None:
    folder.write("a.json", b"secret")
    for path in open_to_all(tmp_path):
        path.chmod(0o755)
    for work in every_use(folder, folder.path.parent):
        with pytest.raises((AccessError, OutputError), match="denied"):
            as_user(STRANGER, work)
    folder.path.parent.chmod(0o755)
    folder.path.chmod(0o755)
    with pytest.raises(AccessError, match=r"a\.json: permission denied"):
        as_user(STRANGER, lambda: folder.read("a.json"))


@needs_root
def test_a_user_trusts_root_s_state(folder, tmp_path) -> None:
    folder.write("a.json", b"of root")
    for path in (*open_to_all(tmp_path), folder.path.parent, folder.path):
        path.chmod(0o755)
    (folder.path / "a.json").chmod(0o644)
    assert as_user(STRANGER, lambda: folder.read("a.json")) == b"of root"


# Where it is kept


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home and a system's place for state that are nobody's."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(state_folder, "SYSTEM", tmp_path / "system")
    return tmp_path / "home"


def named_user(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)


@pytest.mark.parametrize("value", [None, "", "state", "./state", "~/state"])
@pytest.mark.usefixtures("own_home")
def test_root_has_one_place_whatever_its_home(monkeypatch, tmp_path, value) -> None:
    named_user(monkeypatch, 0)
    if value is not None:
        monkeypatch.setenv("XDG_STATE_HOME", value)
    assert state_folder.state_directory() == tmp_path / "system"
    monkeypatch.setenv("HOME", "/home/ada")
    assert state_folder.state_directory() == tmp_path / "system"


def test_anybody_else_s_is_at_home(monkeypatch, own_home) -> None:
    named_user(monkeypatch, 1000)
    assert state_folder.state_directory() == own_home / ".local" / "state" / "dltools"


@pytest.mark.parametrize("uid", [0, 1000])
@pytest.mark.usefixtures("own_home")
def test_xdg_and_what_is_asked_for_win(monkeypatch, uid) -> None:
    named_user(monkeypatch, uid)
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert state_folder.state_directory() == Path("/var/state/dltools")
    assert state_folder.state_directory(Path("/else/where")) == Path("/else/where")
    assert state_folder.state_directory(Path("here")) == Path.cwd() / "here"


@pytest.mark.usefixtures("own_home")
def test_asking_makes_no_directory(tmp_path) -> None:
    assert state_folder.state_directories(tmp_path / "asked")[0] == tmp_path / "asked"
    assert list(tmp_path.iterdir()) == []


def test_without_a_home_a_user_is_told_what_to_set(monkeypatch) -> None:
    """As in cron and in containers, for a user whom no list of users has."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    for name in ("XDG_STATE_HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="no home directory is known; set HOME"):
        state_folder.state_directory()
    assert state_folder.state_directories() == [state_folder.SYSTEM]
    assert default_address().url == ""
