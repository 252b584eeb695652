"""Slips in labels and targets are told, each once, with what was probably meant."""

import json

import pyarrow as pa
import pytest
from helpers.encoding import encode
from helpers.observed_rows import container, node, point

from dltools.observations.formats.arrow import FORMAT as ARROW
from dltools.observations.formats.parquet import FORMAT as PARQUET
from dltools.observations.input_warnings import InputWarnings
from dltools.observations.table import Row, to_table

LABELS = {"dltools.metric": "loss", "dltools.targt": "0.5", "com.example": "x"}


def rows(second: float, *names: str) -> list[Row]:
    found = [node(second)]
    for name in names:
        found.append(container(second, name, second, labels=json.dumps(LABELS)))
        found.append(point(second, name, 1.0))
    return found


def test_a_container_s_labels_are_told_once() -> None:
    made = InputWarnings()
    said = "a: unknown label dltools.targt: did you mean dltools.target?"
    assert made.of_labels(to_table([*rows(0, "a"), *rows(1, "a")])) == [said]
    assert made.of_labels(to_table(rows(2, "a", "b"))) == [said.replace("a:", "b:", 1)]
    assert made.of_labels(to_table([])) == []
    joined = pa.concat_tables([to_table(rows(3, "c")), to_table(rows(4, "d"))])
    assert made.of_labels(joined) == [said.replace("a:", "c, d:", 1)]


def test_patterns_that_match_no_container_are_told_once_after_one_was_seen() -> None:
    made = InputWarnings(["mlp-*", "cn", "job-1"])
    assert made.of_targets() == []
    made.of_labels(to_table(rows(0, "mlp-1", "cnn")))
    assert made.of_targets(" so far") == [
        "[cn] matches no container so far: did you mean cnn?",
        "[job-1] matches no container so far; known: cnn, mlp-1",
    ]
    assert made.of_targets() == []


@pytest.mark.parametrize("format_", [PARQUET, ARROW])
def test_dl_plan_tells_them_once_a_run(tool, tmp_path, format_) -> None:
    targets = tmp_path / "targets.toml"
    targets.write_text("[bort]\nmetric = 'loss'\ntarget = 0.5\n")
    data = b"".join(encode(format_, to_table(rows(second, "bert"))) for second in (0, 1))
    if format_ is PARQUET:
        data = encode(format_, to_table([*rows(0, "bert"), *rows(1, "bert")]))
    done = tool("dl-plan", "--targets", targets, input=data)
    assert done.returncode == 0
    label, target = done.stderr.decode().splitlines()
    assert label == "dl-plan: bert: unknown label dltools.targt: did you mean dltools.target?"
    assert target.startswith("dl-plan: [bort] matches no container")
    assert target.endswith(": did you mean bert?")
