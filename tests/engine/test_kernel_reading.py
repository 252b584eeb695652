"""Small files of the kernel: read, held open, and gone."""

from collections.abc import Iterator

import pytest

from dltools.engine import kernel_reading
from dltools.engine.kernel_reading import (
    HeldFiles,
    number_after,
    pressure_seconds,
    read_flat,
    read_int,
    read_text,
)


@pytest.mark.parametrize(
    ("text", "number"), [("12\n", 12), ("-1\n", -1), ("max\n", None), ("", None), ("1 2\n", None)]
)
def test_a_number_is_read(tmp_path, text, number) -> None:
    (tmp_path / "file").write_text(text)
    assert read_int(tmp_path / "file") == number


def test_a_missing_file_and_one_that_is_no_text_are_empty(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"\xff")
    assert read_text(tmp_path / "file") == ""
    assert read_text(tmp_path / "none") == ""
    assert read_int(tmp_path / "none") is None
    assert read_flat(tmp_path / "none") == {}
    assert pressure_seconds(tmp_path / "none") is None


def test_a_long_file_is_read_whole(tmp_path) -> None:
    (tmp_path / "file").write_text("x" * 200_000)
    assert len(read_text(tmp_path / "file")) == 200_000


def test_keys_and_values_are_read(tmp_path) -> None:
    (tmp_path / "file").write_text("usage_usec 12\nname text\nnr_periods 0\n")
    assert read_flat(tmp_path / "file") == {"usage_usec": 12, "nr_periods": 0}


def test_a_number_is_found_after_its_key() -> None:
    text = "\nanon 1\nfile 22\nfile_mapped 3\n"
    assert number_after("\nfile ", text) == 22
    assert number_after("\nshmem ", text) is None


def test_pressure_is_the_total_of_some(tmp_path) -> None:
    (tmp_path / "file").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    )
    assert pressure_seconds(tmp_path / "file") == 1.5


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldFiles]:
    monkeypatch.setattr(HeldFiles, "_most", 2)
    monkeypatch.setattr(HeldFiles, "_open_count", 0)
    made = HeldFiles()
    yield made
    made.close()


def test_a_held_file_is_opened_once(tmp_path, held, monkeypatch) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    assert held.read(file) == "1"
    file.write_text("2")
    monkeypatch.setattr(kernel_reading.os, "open", lambda *_: pytest.fail("opened again"))
    assert held.read(file) == "2"


def test_a_file_that_the_kernel_does_not_have_is_looked_for_once(tmp_path, held) -> None:
    assert held.read(tmp_path / "none") == ""
    (tmp_path / "none").write_text("1")
    assert held.read(tmp_path / "none") == ""
    held.close()
    assert held.read(tmp_path / "none") == "1"


def test_no_more_files_are_held_than_may_be(tmp_path, held) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_text(str(number))
        assert held.read(tmp_path / str(number)) == str(number)
    assert HeldFiles._open_count == 2
    held.close()
    assert HeldFiles._open_count == 0
