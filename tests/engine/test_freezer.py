"""The kernel's freezer, on files of both versions."""

import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

from dltools.engine import freezer
from dltools.engine.cgroup_files import Directory
from dltools.engine.freeze_watch import FreezeWatch
from dltools.engine.interface import Container, Engine, GoneError, RefusedError


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def made(folder: Path, version: int, *, frozen: bool = False) -> Directory:
    """Return a cgroup whose processes stand at once where `frozen`, and never otherwise."""
    if version == 1:
        (folder / "freezer.state").write_text("FROZEN\n" if frozen else "THAWED\n")
        return Directory(folder, 1)
    (folder / "cgroup.freeze").write_text("1\n" if frozen else "0\n")
    (folder / "cgroup.events").write_text(f"populated 1\nfrozen {int(frozen)}\n")
    return Directory(folder, 2)


def test_what_is_frozen_is_told(tmp_path, version) -> None:
    assert not freezer.is_frozen(made(tmp_path, version))
    assert freezer.is_frozen(made(tmp_path, version, frozen=True))


def test_freezing_writes_the_file_and_waits(tmp_path, version) -> None:
    found = made(tmp_path, version, frozen=True)
    freezer.freeze(found)
    freezer.thaw(found)
    assert not freezer.is_frozen(found)


def write(file: Path, text: str) -> None:
    """Write a file as the kernel shows it: it is empty at no moment."""
    with file.open("r+") as opened:
        opened.write(f"{text:<9}\n")


def freezing(directory: Directory) -> None:
    """Do to a cgroup's files what whoever freezes it does, before its processes stand."""
    name = freezer.FILES[directory.version][0]
    write(directory.path / name, "FREEZING" if directory.version == 1 else "1")


def stand(folder: Path, version: int, count: int) -> None:
    """Have version 2 say whether all processes stand; the other one's state does."""
    if version == 2:
        (folder / "new").write_text(f"frozen {count}\n")
        (folder / "new").replace(folder / "cgroup.events")


def test_a_freeze_is_heard_before_the_processes_stand(tmp_path, version) -> None:
    heard: SimpleQueue[str] = SimpleQueue()
    watch = FreezeWatch(heard.put)
    found = made(tmp_path, version)
    for _ in range(2):
        watch.add("a", found)
    watch.add("b", None)
    watch.add("c", Directory(tmp_path / "gone", version))
    freezing(found)
    assert heard.get(timeout=10) == "a"
    time.sleep(0.2)
    name, thawed, frozen = freezer.FILES[version]
    stand(tmp_path, version, 1)
    write(tmp_path / name, frozen)
    write(tmp_path / name, thawed)
    stand(tmp_path, version, 0)
    with pytest.raises(Empty):
        heard.get(timeout=0.3)
    freezing(found)
    assert heard.get(timeout=10) == "a"
    watch.close()


def test_a_cgroup_that_is_made_again_is_heard(tmp_path, version) -> None:
    heard: SimpleQueue[str] = SimpleQueue()
    watch = FreezeWatch(heard.put)
    for _ in range(2):
        found = made(tmp_path, version)
        watch.add("a", found)
        freezing(found)
        assert heard.get(timeout=10) == "a"
        for file in tmp_path.iterdir():
            file.unlink()
        time.sleep(0.2)
    watch.close()


def test_what_does_not_freeze_in_time_is_thawed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(freezer, "_FREEZES_WITHIN_S", 0.05)
    found = made(tmp_path, 2)
    with pytest.raises(RefusedError, match="do not freeze"):
        freezer.freeze(found)
    assert not freezer.is_frozen(found)


def test_a_cgroup_that_is_gone_is_not_made_anew(tmp_path, version) -> None:
    found = made(tmp_path, version)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(GoneError):
        freezer.freeze(found)
    assert list(tmp_path.iterdir()) == []


def test_a_freezer_that_is_elsewhere_is_named() -> None:
    with pytest.raises(RefusedError, match="not visible here"):
        freezer.freeze(None)


@pytest.mark.parametrize("answers", [True, False])
def test_only_containers_whose_engine_is_silent_are_thawed(tmp_path, monkeypatch, answers) -> None:
    class Asked(Engine):
        def inspect(self, id_: str) -> Container:
            if not answers:
                threading.Event().wait(1.0)
            return Container(id_, id_)

    monkeypatch.setattr(freezer, "_ANSWERS_WITHIN_S", 0.2)
    found = made(tmp_path, 2, frozen=True)
    freezer.thaw_if_stuck(Asked(), "job", found)
    assert freezer.is_frozen(found) is answers
