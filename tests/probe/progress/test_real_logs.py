"""Real logs of other people's trainings, against a second method: plain expressions, one a metric.

The logs are not part of this project: DLTOOLS_DATA names their folder, or it stands beside the
checkout; without it the tests are skipped. The counts were established with grep -c.
"""

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dltools.probe.progress import Automatic, Point, PointReader

DATA = Path(os.environ.get("DLTOOLS_DATA") or Path(__file__).parents[4] / "shared" / "data")
LOGS = DATA / "logs" / "train"
N = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan)"


@dataclass(frozen=True)
class Real:
    """A log, the families in it, and for each metric an expression and how often it matches."""

    file: str
    families: set[str]
    metrics: dict[str, tuple[str, int]]
    steps: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, str] = field(default_factory=dict)


MLL = r'^:::MLL \S+ eval_accuracy: \{"value": "?' + N
REALS = [
    Real("deepspeed/step1_sft_opt1.3b.log", {"named"}, {"eval_perplexity": (r"^ppl: " + N, 17)},
         epochs={"eval_perplexity": r"Evaluating perplexity, Epoch (\d+)/16"}),
    Real("deepspeed/step2_reward_opt350m.log", {"named"}, {
        "loss": (r"^Epoch 1/1 with loss " + N, 1),
        "eval_accuracy": (r"acc \(higher is better\) : " + N, 2),
        "eval_chosen_last_scores": (r"^chosen_last_scores \(higher is better\) : " + N, 2),
    }),
    Real("mlperf/google_tpu32_gnmt_r0.txt", {"jsonlines"}, {"eval_accuracy": (MLL, 6)},
         epochs={"eval_accuracy": r'eval_accuracy: .*"epoch_num": (\d+)'}),
    Real("mlperf/google_tpu32_resnet_r0.txt", {"jsonlines"}, {"eval_accuracy": (MLL, 15)},
         epochs={"eval_accuracy": r'eval_accuracy: .*"epoch_num": (\d+)'}),
    Real("mlperf/nvidia_dgx1_gnmt_r0.txt", {"jsonlines", "named"}, {
        "loss_tok": (r"^0: TRAIN .*Loss/tok " + N, 776),
        "train_loss": (r"^0: Summary: .*Training Loss: " + N, 4),
        "test_bleu": (r"^0: Summary: .*Test BLEU: " + N, 4),
        "eval_accuracy": (MLL, 4),
        "test_score": (r"^0: BLEU\(score=" + N, 4),
    }, steps={"loss_tok": r"TRAIN \[\d+\]\[(\d+)/1938\]"},
       epochs={"loss_tok": r"TRAIN \[(\d+)\]"}),
    Real("mlperf/nvidia_dgx1_mxnet_resnet_r0.txt", {"jsonlines", "named"}, {
        "accuracy": (r"samples/sec\s+accuracy=" + N, 2280),
        "val_accuracy": (r"Validation-accuracy=" + N, 15),
        "eval_accuracy": (MLL, 15),
    }, steps={"accuracy": r"Batch \[\d+-(\d+)\]\s+Speed"},
       epochs={"accuracy": r"Epoch\[(\d+)\] Batch \["}),
    Real("mlperf/nvidia_dgx1_ssd_r0.txt", {"forms", "jsonlines", "named"}, {
        "loss": (r"Loss function: " + N, 301), "average_loss": (r"Average Loss: " + N, 301),
        "eval_accuracy": (MLL, 3),
        "val_map": (r"Precision  \(AP\) @\[ IoU=0.50:0.95 \| area=   all .*= " + N, 3),
        "val_map50": (r"Precision  \(AP\) @\[ IoU=0.50      \| area=   all .*= " + N, 3),
    }, steps={"loss": r"^Iteration:\s+(\d+), Loss function"}),
    Real("mlperf/nvidia_dgx1_transformer_r0.txt", {"jsonlines", "named"}, {
        "loss": (r"^\| epoch .*?\bloss[ =]" + N, 6),
        "perplexity": (r"^\| epoch .*\bppl[ =]" + N, 6),
        "grad_norm": (r"^\| epoch .*\bgnorm[ =]" + N, 6),
        "test_bleu_score": (r"beam=4: bleu_score=" + N, 3),
        "eval_accuracy": (MLL, 3),
    }, epochs={"loss": r"^\| epoch (\d+)[ :]"},
       steps={"loss": r"^\| epoch .*num_updates[ =](\d+)"}),
    Real("nanogpt/modded_2024-10-10_muon.txt", {"named"}, {
        "train_loss": (r"^step:\d+/6200 train_loss:" + N, 6200),
        "val_loss": (r"^step:\d+/6200 val_loss:" + N, 51),
    }, steps={"train_loss": r"^step:(\d+)/6200 train_", "val_loss": r"^step:(\d+)/6200 val_"}),
    Real("nanogpt/modded_2024-12-04.txt", {"named"}, {
        "train_loss": (r"^step:\d+/1530 train_loss:" + N, 1530),
        "val_loss": (r"^step:\d+/1530 val_loss:" + N, 14),
    }),
    Real("notebook_stdout/dlf_chainer_multigpu.txt", {"tables"}, {
        "loss": (r"J\d +\d+ +" + N, 5), "val_loss": (r"J\d +\d+ +[\d.]+ +" + N, 5),
    }, steps={"loss": r"J\d +(\d+) +[\d.]+ +[\d.]"}),
    Real("notebook_stdout/dlf_cntk_cnn.txt", {"named"}, {"accuracy": (r"Accuracy: " + N, 10)},
         epochs={"accuracy": r"^Epoch (\d+) "}),
    Real("notebook_stdout/dlf_gluon_cnn.txt", {"named"}, {"loss": (r"loss: " + N, 10)},
         epochs={"loss": r"^Epoch +(\d+):"}),
    Real("notebook_stdout/dlf_gluon_multigpu.txt", {"named"}, {
        "loss": (r"Loss: " + N, 15), "test_accuracy": (r"^Epoch \d+, " + N + " test_accuracy", 5),
    }, steps={"loss": r"^Batch (\d+):"}, epochs={"test_accuracy": r"^Epoch (\d+), "}),
    Real("notebook_stdout/dlf_keras_tf_cnn.txt", {"bars"}, {
        "loss": (r"- loss: " + N, 10), "accuracy": (r"- acc: " + N, 10),
    }, epochs={"loss": r"^Epoch (\d+)/10"}),
]  # fmt: skip


def points(file: str) -> list[Point]:
    path = LOGS / file
    if not path.exists():
        pytest.skip("the real logs are not at hand: set DLTOOLS_DATA")
    log, found = PointReader(Automatic()), []
    with path.open("rb") as stream:
        while piece := stream.read(1 << 16):
            found += log.feed(piece)
    return found + log.end()


@pytest.mark.parametrize("real", REALS, ids=lambda real: real.file)
def test_a_second_method_finds_the_same(real) -> None:
    found = points(real.file)
    text = (LOGS / real.file).read_text(errors="replace")
    assert {point.source for point in found} == real.families
    for metric, (expression, count) in real.metrics.items():
        expected = [float(value) for value in re.findall(expression, text, re.M)]
        assert len(expected) == count
        of_metric = [point for point in found if point.metric == metric]
        got = [point.value for point in of_metric]
        assert len(got) == count, metric
        assert all(
            a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(got, expected, strict=True)
        ), metric
        if metric in real.steps:
            steps = [int(step) for step in re.findall(real.steps[metric], text, re.M)]
            assert [point.step for point in of_metric] == steps
        if metric in real.epochs:
            epochs = [float(epoch) for epoch in re.findall(real.epochs[metric], text, re.M)]
            assert [point.epoch for point in of_metric] == epochs
    others = {point.metric for point in found} - real.metrics.keys() - {"nll_loss"}
    assert others == set()


def test_every_log_at_hand_is_in_the_table() -> None:
    if not LOGS.exists():
        pytest.skip("the real logs are not at hand: set DLTOOLS_DATA")
    files = {str(file.relative_to(LOGS)) for file in LOGS.rglob("*") if file.is_file()}
    # Caffe2's notebook prints `0: 1.58287`, which no reader can tell from anything else.
    assert files == {real.file for real in REALS} | {"notebook_stdout/dlf_caffe2_cnn.txt"}
