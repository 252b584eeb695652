"""Files of metrics as jobs write them: found, followed, replaced, and never given twice."""

import json
import math
import os
import time
from pathlib import Path

import pytest

from dltools.probe.files import file_source
from dltools.probe.files.file_source import FileSource, _moment
from dltools.probe.files.readers import Csv, reader_of

Row = tuple[str, float, int | None, float | None, str]


def new(source: FileSource, now: float = 0.0) -> list[Row]:
    points = [found.point for found in source.read(now)]
    return [(p.metric, p.value, p.step, p.epoch, p.source) for p in points]


def watched(root: Path, *paths: str) -> FileSource:
    return FileSource(str(root), list(paths) or None, ["/run"])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def replace(log: Path, text: str) -> None:
    again = log.with_name("again.tmp")
    again.write_text(text)
    again.rename(log)


def test_keras_csv_logger(tmp_path, run) -> None:
    source = watched(tmp_path, "/run/log.csv")
    assert new(source) == []
    assert source.gap is None
    log, names = run / "log.csv", ["accuracy", "loss", "val_accuracy", "val_loss"]
    append(log, "epoch,accuracy,loss,val_accuracy,val_loss\n")
    assert new(source) == []
    append(log, "0,0.5,1.25,0.4,nan\n1,0.6,1.0,0.5,1.1")
    found = new(source)
    assert [row[0] for row in found] == names
    assert [row[1] for row in found[:3]] == [0.5, 1.25, 0.4]
    assert math.isnan(found[3][1])
    append(log, "\n")
    values = zip(names, (0.6, 1.0, 0.5, 1.1), strict=True)
    assert new(source) == [(*value, None, 1.0, "csv") for value in values]
    assert new(source) == []


def test_lightning_csv_that_is_rewritten_gives_nothing_twice(tmp_path, run) -> None:
    log = run / "metrics.csv"
    source = watched(tmp_path)
    append(log, "epoch,step,train_loss\n")
    assert new(source) == []
    append(log, "0,10,2.5\n0,20,2.0\n")
    assert [row[:3] for row in new(source)] == [("train_loss", 2.5, 10), ("train_loss", 2.0, 20)]
    # A new column appeared: Lightning writes the file anew.
    replace(log, "epoch,step,train_loss,val_loss\n0,10,2.5,\n0,20,2.0,\n0,20,,1.75\n")
    assert [row[:3] for row in new(source)] == [("val_loss", 1.75, 20)]


def test_yolo_results_csv_with_padded_names(tmp_path, run) -> None:
    (run / "results.csv").write_text(
        "                  epoch,         train/box_loss,   metrics/mAP50(B),     lr/pg0\r\n"
        "                      1,                1.5,               0.25,        0.01\r\n"
    )
    assert new(watched(tmp_path)) == [
        ("train_box_loss", 1.5, None, 1.0, "csv"),
        ("metrics_map50_b", 0.25, None, 1.0, "csv"),
    ]


def test_of_an_old_file_without_times_the_newest_row_counts(tmp_path, run) -> None:
    (run / "metrics.csv").write_text("epoch,step,loss\n0,1,3.0\n0,2,2.0\n1,3,1.0\n")
    source = watched(tmp_path)
    (found,) = source.read(0)
    assert (found.point.value, found.point.step) == (1.0, 3)
    assert abs(found.time.timestamp() - (run / "metrics.csv").stat().st_mtime) < 1e-3


def test_tab_separated_and_semicolons() -> None:
    for separator in "\t;":
        text = f"step{separator}loss\n1{separator}0.5\n".encode()
        ((_, point),) = Csv().feed(text)
        assert (point.metric, point.value, point.step) == ("loss", 0.5, 1)


def test_json_lines(tmp_path, run) -> None:
    (run / "metrics.jsonl").write_text(
        '{"step": 1, "loss": 0.5, "timestamp": 1700000000.5}\n{"step": 2'
    )
    (found,) = watched(tmp_path).read(0)
    assert (found.point.metric, found.point.step, found.point.source) == ("loss", 1, "jsonl")
    assert found.time.timestamp() == 1700000000.5


def test_trainer_state(tmp_path, run) -> None:
    place = run / "checkpoint-20"
    place.mkdir()
    source = watched(tmp_path)
    state = place / "trainer_state.json"
    entries = [
        {"epoch": 0.1, "step": 10, "loss": 2.5, "learning_rate": 1e-5},
        {"epoch": 0.1, "step": 10, "eval_loss": 2.25, "eval_runtime": 3.0},
    ]
    state.write_text(json.dumps({"log_history": entries}))
    assert [row[:3] for row in new(source)] == [("loss", 2.5, 10), ("eval_loss", 2.25, 10)]
    entries.append({"epoch": 0.2, "step": 20, "loss": 2.0})
    state.write_text(json.dumps({"log_history": entries}))
    os.utime(state, (time.time() + 5, time.time() + 5))
    assert [row[:3] for row in new(source, 1)] == [("loss", 2.0, 20)]


def test_mlflow(tmp_path, run) -> None:
    place = run / "mlruns/0/abc/metrics/val"
    place.mkdir(parents=True)
    (place / "loss").write_text("1708382496112 0.432 0\n1708382497112 nan 1\nbroken\n")
    found = watched(tmp_path).read(0)
    assert [(f.point.metric, f.point.step, f.time.timestamp()) for f in found] == [
        ("val_loss", 0, 1708382496.112),
        ("val_loss", 1, 1708382497.112),
    ]


def test_files_are_looked_for_now_and_then(tmp_path, run) -> None:
    source = watched(tmp_path)
    assert new(source, 0) == []
    (run / "metrics.csv").write_text("step,loss\n1,0.5\n")
    assert new(source, 29) == []
    assert len(new(source, 30)) == 1


def test_patterns_name_files(tmp_path, run) -> None:
    (run / "a").mkdir()
    (run / "a/my-metrics.txt").write_text("step,loss\n1,0.5\n")
    assert len(new(watched(tmp_path, "/run/*/my-*.txt"))) == 1


def test_a_truncated_file_is_read_anew(tmp_path, run) -> None:
    log = run / "metrics.csv"
    log.write_text("step,loss\n1,0.5\n2,0.4\n")
    source = watched(tmp_path)
    assert [row[2] for row in new(source)] == [2]
    log.write_text("step,loss\n1,0.3\n")
    assert [row[1] for row in new(source)] == [0.3]


def test_of_an_old_file_that_is_replaced_only_new_rows_count(tmp_path, run) -> None:
    rows = ["epoch,loss", *(f"{epoch},{1 / epoch}" for epoch in range(1, 51))]
    replace(run / "results.csv", "\n".join(rows) + "\n")
    source = watched(tmp_path)
    assert [row[3] for row in new(source)] == [50.0]
    replace(run / "results.csv", "\n".join([*rows, "51,0.01"]) + "\n")
    assert [row[3] for row in new(source, 1)] == [51.0]


def test_of_a_file_with_more_points_than_are_remembered_the_newest_count(tmp_path, run) -> None:
    entries: list[dict[str, float]] = [{"step": step, "loss": 2.5} for step in range(21_000)]
    source, state = watched(tmp_path), run / "trainer_state.json"
    for changed in range(1, 4):
        entries.append({"step": 21_000 + changed, "loss": 2.0})
        state.write_text(json.dumps({"log_history": entries}))
        os.utime(state, (changed, changed))
        assert [row[2] for row in new(source, changed)] == [21_000 + changed]


def test_of_a_long_old_file_the_end_is_read(tmp_path, run) -> None:
    log = run / "metrics.csv"
    log.write_text("step,loss\n" + "1,0.5\n" * 1_500_000 + "2,0.5\n")
    source = watched(tmp_path)
    assert [row[2] for row in new(source)] == [2]
    append(log, "3,0.25\n")
    assert [row[:3] for row in new(source, 1)] == [("loss", 0.25, 3)]


def test_files_that_take_long_to_read_are_read_later(tmp_path, run, monkeypatch) -> None:
    monkeypatch.setattr(file_source, "PATIENCE_S", 0.001)
    lines = "".join(f'{{"step": {step}, "loss": 0.5}}\n' for step in range(1_000))
    for number in range(4):
        (run / f"{number}.jsonl").write_text(lines)
    source = watched(tmp_path)
    found = len(new(source))
    assert found < 4
    assert (source.gap or "").startswith("files: reading them takes too long")
    for now in range(1, 6):
        found += len(new(source, now))
    assert found == 4
    assert source.gap is None


@pytest.mark.parametrize("moment", [1e14, -1e14])
def test_a_file_may_be_of_any_time(moment) -> None:
    assert _moment(None, moment).year == 1970
    assert _moment(moment, 4e8).year == 1982


def test_what_seems_empty_is_not_read(monkeypatch) -> None:
    monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("to read /proc/kmsg takes its lines"))
    assert new(FileSource("/", ["/proc/version"])) == []


def test_a_vanished_root_is_a_gap(tmp_path) -> None:
    source = FileSource(str(tmp_path / "gone"), None, ["/"])
    assert source.read(0) == []
    assert source.gap == "files: No such file or directory"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/w/events.out.tfevents.17.host", "Records"),
        ("/w/results.csv", "Csv"),
        ("/w/trainer_state.json", "TrainerState"),
        ("/w/mlruns/0/r/metrics/loss", "MLflow"),
        ("/w/20260131.log.json", "JsonLines"),
        ("/w/data.csv", "NoneType"),
        ("/w/x.txt", "NoneType"),
    ],
)
def test_files_are_known_by_name(path, kind) -> None:
    assert type(reader_of(path)).__name__ == kind


def test_an_idle_look_at_twenty_files_reads_none(tmp_path, run, monkeypatch) -> None:
    for number in range(20):
        (run / str(number)).mkdir()
        (run / f"{number}/metrics.csv").write_text("step,loss\n1,0.5\n")
    source = watched(tmp_path)
    assert len(new(source)) == 20
    sizes, pread = [], os.pread

    def counted(handle: int, size: int, offset: int) -> bytes:
        data = pread(handle, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    monkeypatch.setattr(os, "scandir", lambda _: pytest.fail("an idle look lists no directory"))
    assert new(source, 1) == []
    assert sum(sizes) == 0
    assert len(sizes) <= 20
