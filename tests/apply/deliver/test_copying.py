"""Checkpoints in the engine's tar streams: whole and with their digests, or refused."""

import hashlib
from types import SimpleNamespace

import pytest
from helpers.examples import examples
from helpers.tar_archives import archive
from hypothesis import given
from hypothesis import strategies as st

from dltools.apply.deliver.copying import CopiedFile, DamagedError, digest, unpack

MODEL = bytes(range(256)) * 300


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pieces(data: bytes, size: int = 700) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def test_a_file_is_copied_with_its_digest_and_time(tmp_path) -> None:
    found = unpack(iter(pieces(archive({"model.pt": MODEL}))), tmp_path)
    time = "2023-11-14T22:13:20.000000Z"
    assert found == [CopiedFile("model.pt", len(MODEL), sha256(MODEL), time)]
    assert (tmp_path / "model.pt").read_bytes() == MODEL
    assert digest(found) == sha256(MODEL)


def test_a_folder_has_a_digest_of_its_files_in_order(tmp_path) -> None:
    made = archive({"ckpt/": None, "ckpt/w/b": b"2", "ckpt/a": b"1", "ckpt/empty/": None})
    found = unpack(iter([made]), tmp_path)
    assert [(file.path, file.size) for file in found] == [("ckpt/a", 1), ("ckpt/w/b", 1)]
    lines = f"{sha256(b'1')}  ckpt/a\n{sha256(b'2')}  ckpt/w/b\n"
    assert digest(found) == sha256(lines.encode())
    assert (tmp_path / "ckpt" / "empty").is_dir()


@examples(30)
@given(cut=st.integers(0, 78_000), size=st.integers(1, 5000))
def test_an_archive_that_is_cut_off_anywhere_is_refused(tmp_path_factory, cut, size) -> None:
    whole = archive({"model.pt": MODEL})
    ended = len(whole) - len(whole.rstrip(b"\0")) - 1024  # padding after the end
    with pytest.raises(DamagedError):
        unpack(
            iter(pieces(whole[: min(cut, len(whole) - ended - 1)], size)),
            tmp_path_factory.mktemp("cut"),
        )


def test_a_file_that_would_fill_the_disk_is_refused_at_once(tmp_path, monkeypatch) -> None:
    made, free = archive({"a": b"1" * 5000, "b": MODEL}), (2 << 30) + 10_000
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free - (1 << 30)))
    with pytest.raises(OSError, match="do not fit"):
        unpack(iter([made]), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (archive({}, {"model.pt": "/etc/shadow"}), "model.pt is no file: name the file"),
        (archive({"../model.pt": b"x"}), "outside of the checkpoint"),
        (archive({"/model.pt": b"x"}), "outside of the checkpoint"),
        (archive({"ckpt/": None}), "holds no file"),
        (b"", "cannot be read"),
    ],
)
def test_what_holds_no_checkpoint_is_refused(tmp_path, made, why) -> None:
    with pytest.raises(DamagedError, match=why):
        unpack(iter([made]), tmp_path / "into")
