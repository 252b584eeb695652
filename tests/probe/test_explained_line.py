"""How one line of a log was read: what was found in it, what not, and why."""

import io
import json

import pytest

from dltools.probe.explained_line import Drawing, explain_line
from dltools.probe.progress import Pattern

LOG = """\
average_loss: 51200
epoch 1 step 10 loss: 0.5 lr: 0.001 quux=0.25
epoch 1 step 20 loss: 0.4 lr: 0.001 quux=0.15
[rank1]: epoch 1 step 20 loss: 0.4
reward: 12.5

my_thing: 0.25
  5%|5   | 5/100 [00:01<00:19, 5.00it/s, loss=1.5]\r 10%|#   | 10/100 [00:02<00:18, loss=1.25]
"""


def read(number: int, pattern: str | None = None) -> Drawing:
    (found,) = explain_line(io.BytesIO(LOG.encode()), number, Pattern(pattern) if pattern else None)
    return found


def why(found: Drawing) -> dict[str, str]:
    return {one.name: one.why for one in found.left_out}


def test_a_point_and_what_is_none() -> None:
    found = read(2)
    assert [(p.metric, p.value, p.step, p.epoch) for p in found.kept] == [("loss", 0.5, 10, 1)]
    assert why(found) == {
        "epoch": "a counter",
        "step": "a counter",
        "lr": "a rate, a size, a time, a counter or a setting",
        "quux": "no well-known metric's name",
    }


@pytest.mark.parametrize(
    "line",
    [
        "epoch 1 validation loss: 0.5",
        "Epoch 1 train 0.75 val 0.5",
        "epoch 1 [train] loss: 0.5",
        "Test set: epoch 1, Accuracy: 9812/10000 (98%)",
    ],
)
def test_what_gave_a_point_is_not_left_out(line) -> None:
    (found,) = explain_line(io.BytesIO(f"{line}\n".encode()), 1, None)
    assert found.kept
    assert set(why(found)) <= {"epoch", "Epoch"}


def test_a_line_that_comes_once_is_held_as_noise() -> None:
    assert [point.metric for point in read(1).noise] == ["average_loss"]
    assert read(1).kept == []


def test_what_another_rank_repeats() -> None:
    found = read(4)
    assert found.line.rank == "rank1"
    assert (found.kept, [point.value for point in found.repeated]) == ([], [0.4])


def test_each_drawing_of_a_bar_is_explained() -> None:
    drawings = explain_line(io.BytesIO(LOG.encode()), 8, None)
    assert [drawing.line.is_redrawn for drawing in drawings] == [False, True]


def test_the_advised_pattern_finds_the_number() -> None:
    (left_out,) = read(7).left_out
    assert left_out.pattern
    assert [point.value for point in read(7, left_out.pattern).kept] == [0.25]


@pytest.mark.parametrize("number", [6, 9, 1000])
def test_a_line_that_is_not_there_has_no_explanation(number) -> None:
    assert explain_line(io.BytesIO(LOG.encode()), number, None) == []


def test_the_command_names_a_label_that_helps(tool) -> None:
    done = tool("dl-probe", "/dev/stdin:7", input=LOG.encode())
    assert done.stdout.decode().splitlines() == [
        "text      my_thing: 0.25",
        "left out  my_thing 0.25: no well-known metric's name",
        "label     dltools.pattern='my_thing: (?P<my_thing>[-+.0-9a-zA-Z]+)' finds it",
    ]
    pattern = done.stdout.decode().split("'")[-2]
    found = tool("dl-probe", "-", "--pattern", pattern, "--format", "jsonl", input=LOG.encode())
    assert [json.loads(line)["value"] for line in found.stdout.splitlines()] == [0.25]


def test_the_command_shows_escapes_as_text(tool) -> None:
    log = b"\x1b[31mloss\x1b[0m: 0.5\xff\n" * 3
    done = tool("dl-probe", "/dev/stdin:2", input=log)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout


def test_a_file_whose_name_ends_so_is_a_log(tool, tmp_path) -> None:
    (tmp_path / "job").write_text("loss: 0.5\n" * 3)
    (tmp_path / "job:2").write_text("loss: 0.25\n" * 3)
    found = tool("dl-probe", tmp_path / "job:2", "--format", "jsonl")
    assert {json.loads(line)["value"] for line in found.stdout.splitlines()} == {0.25}
    explained = tool("dl-probe", tmp_path / "job:3")
    assert explained.stdout.startswith(b"text      loss: 0.5")
