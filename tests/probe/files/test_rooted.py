"""No link, and no race, leads out of a container's root."""

import errno
import os
import threading
from pathlib import Path

import pytest

from dltools.probe.files.rooted import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    inside = tmp_path / "root"
    (inside / "a/b").mkdir(parents=True)
    (inside / "a/b/in.txt").write_text("inside")
    (inside / "etc").mkdir()
    (inside / "etc/secret").write_text("the container's own")
    (tmp_path / "secret").write_text("the host's")
    return Root(str(inside))


def content(root: Root, path: str) -> str:
    handle = root.open(path)
    try:
        return os.pread(handle, 100, 0).decode()
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    "path", ["a/b/in.txt", "/a/b/in.txt", "a/./b/../b/in.txt", "../../a/b/in.txt"]
)
def test_what_is_inside_is_opened(root, path) -> None:
    assert content(root, path) == "inside"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/a/b/in.txt", "inside"),
        ("b/in.txt", "inside"),
        ("../../../../../../a/b/in.txt", "inside"),
        ("/etc/secret", "the container's own"),
        ("../secret", None),
        ("../../secret", None),
        ("/proc/self/root/etc/hostname", None),
        ("nowhere", None),
    ],
)
def test_links_stay_inside(root, tmp_path, target, expected) -> None:
    (tmp_path / "root/a/link").symlink_to(target)
    if expected is None:
        with pytest.raises(OSError):
            content(root, "a/link")
    else:
        assert content(root, "a/link") == expected


def test_a_linked_directory_stays_inside(root, tmp_path) -> None:
    (tmp_path / "root/out").symlink_to("..")
    (tmp_path / "root/up").symlink_to(tmp_path)
    for path in ("out/secret", "up/secret"):
        with pytest.raises(FileNotFoundError):
            content(root, path)
    assert content(root, "out/etc/secret") == "the container's own"


def test_links_in_a_circle_end(root, tmp_path) -> None:
    (tmp_path / "root/x").symlink_to("y")
    (tmp_path / "root/y").symlink_to("x")
    with pytest.raises(OSError) as caught:
        content(root, "x")
    assert caught.value.errno == errno.ELOOP


def test_only_regular_files_are_opened(root, tmp_path) -> None:
    os.mkfifo(tmp_path / "root/pipe")
    for path in ("pipe", "a", "/"):  # a pipe that nobody writes to would never open
        with pytest.raises(OSError):
            root.open(path)
    if os.geteuid() == 0:
        os.mknod(tmp_path / "root/null", 0o20666, os.makedev(1, 3))
        with pytest.raises(OSError):
            root.open("null")


def test_odd_names_are_refused(root) -> None:
    for path in ("a\0b", "", "x" * 5000):
        with pytest.raises((OSError, ValueError)):
            root.open(path)


def test_a_directory_swapped_meanwhile_leads_nowhere_else(root, tmp_path) -> None:
    place, aside, evil = (tmp_path / "root" / name for name in ("swap", "aside", "evil"))
    place.mkdir()
    (place / "secret").write_text("inside")
    evil.symlink_to(tmp_path)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            place.rename(aside)
            evil.rename(place)
            place.rename(evil)
            aside.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(content(root, "swap/secret"))
            except OSError:
                continue
    finally:
        stop.set()
        thread.join()
    assert seen <= {"inside"}


def test_files_are_listed_to_a_depth_and_a_number(root, tmp_path) -> None:
    (tmp_path / "root/a/link").symlink_to(tmp_path)
    assert list(root.files("/a", depth=1, most=100)) == ["/a/b/in.txt"]
    assert list(root.files("/a", depth=0, most=100)) == []
    for number in range(50):
        (tmp_path / f"root/etc/{number}").touch()
    assert len(list(root.files("/etc", depth=1, most=20))) <= 20
    assert list(root.files("/nowhere", depth=1, most=20)) == []
