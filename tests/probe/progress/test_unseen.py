"""Logs of programs that the readers were not made for: excerpts written anew, other numbers.

`unseen.toml` says of which programs logs were read, with what a person reads in each, and which of
them were read rightly at the first look.
"""

import tomllib
from math import inf
from pathlib import Path
from random import Random

import pytest

from dltools.observations.judging_metric import Seen, evaluation_order, latencies
from dltools.observations.metric_names import objective
from dltools.probe.progress import Automatic, Point, PointReader

HERE = Path(__file__).parent
FORMS = tomllib.loads((HERE / "unseen_forms.toml").read_text())


def text_of(name: str) -> str:
    text: str = FORMS[name]["text"]
    return text.replace("\\r", "\r").replace("\\t", "\t")


def read(text: str) -> list[Point]:
    log = PointReader(Automatic())
    return log.feed(text.encode()) + log.end()


def series(text: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for point in read(text):
        found.setdefault(point.metric, []).append(point.value)
    return found


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_as_a_person_reads_it(name) -> None:
    form, found = FORMS[name], series(text_of(name))
    assert {metric: [len(of), of[0], of[-1]] for metric, of in found.items()} == form["series"]
    best = evaluation_order(
        {metric: Seen(max(map(abs, of)), len(of)) for metric, of in found.items()}
    )[0]
    assert best == form["main"]
    assert objective(best) == form["better"]


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if "at" in form])
def test_the_counters_of_a_form_are_read(name) -> None:
    form, points = FORMS[name], read(text_of(name))
    at = [[point.step, point.epoch] for point in points if point.metric == form["main"]]
    assert [at[0], at[-1]] == [
        [value if value >= 0 else None for value in one] for one in form["at"]
    ]


def test_names_with_digits_are_told_apart() -> None:
    lines = "".join(
        f"epoch {epoch} q{critic}_loss: 0.{epoch}{critic}\n"
        for epoch in range(1, 40)
        for critic in (1, 2)
    )
    found = series(lines)
    assert found["q1_loss"] == [float(f"0.{epoch}1") for epoch in range(1, 40)]
    assert found["q2_loss"] == [float(f"0.{epoch}2") for epoch in range(1, 40)]


def test_lines_with_digits_in_names_are_remembered_apart() -> None:
    log = Automatic()
    for step in range(60):
        for head in (1, 2):
            (point,) = log.points(f"step {step} head{head}_loss: 0.{head}{step:02}5")
            assert point[:3] == (f"head{head}_loss", float(f"0.{head}{step:02}5"), step)


@pytest.mark.parametrize(
    "line",
    [
        "step {0} | loss {1:.4f} | norm {2:.2f} | lr {1:.2e}",
        "step {0} loss {1} accuracy {2}",
        "[{0}/9000] train_loss={1:.5g}, val_loss={2:.6g}, tokens={0:,}",
        "Step {0:,}: Accuracy: {0}/9000 ({2:.0f}%)",
        "{0}: loss {1:.2f} q1_loss {2:.3f}",
    ],
)
def test_a_line_is_read_as_if_it_came_alone(line) -> None:
    random, log = Random(7), Automatic()
    for _ in range(200):
        step = random.randrange(10 ** random.randint(1, 4))
        text = line.format(step, 10 ** random.uniform(-6, 3), random.random() * 100)
        assert log.points(text) == Automatic().points(text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("recons loss: 0.02,gen_loss: 0.29", {"recons_loss": 0.02, "gen_loss": 0.29}),
        ("grpo_loss is 0.013", {"grpo_loss": 0.013}),
        ("train_epoch_loss=tensor(1.2, device='cuda:0')", {"train_epoch_loss": 1.2}),
        ("actor/pg_loss:0.001 - actor/kl:0.3", {"actor_pg_loss": 0.001, "actor_kl": 0.3}),
        ("Accuracy@1: 24%", {"accuracy_1": 24.0}),
        ("Validation bpb: 1.17", {"val_bpb": 1.17}),
        ("[train: loss 1.2]", {"train_loss": 1.2}),
        (
            "Train Loss: 0.5 Acc: 0.9 | Val Loss: 0.4 Acc: 0.8",
            {"train_loss": 0.5, "train_accuracy": 0.9, "val_loss": 0.4, "val_accuracy": 0.8},
        ),
        ("accuracy: 9812/10000 (98.12%)", {"accuracy": 0.9812}),
        ("loss (train): 0.5 | loss (val): 0.4", {"train_loss": 0.5, "val_loss": 0.4}),
        ("'loss': np.float32(0.25), 'lr': 0.1", {"loss": 0.25}),
        ("loss -> 0.25", {"loss": 0.25}),
        ("**loss**: 0.25", {"loss": 0.25}),
        ("Mean reward: -20.5 | epsilon: 0.9", {"reward": -20.5}),
        ("INFO Epoch finished with training loss: 0.5", {"train_loss": 0.5}),
        ("Epoch 3 | best epoch 2 | loss: 0.5", {"loss": 0.5}),
        ("Epoch 3 (best epoch 2) loss: 0.5", {"loss": 0.5}),
        ("Epoch 3 loss: 0.5, best loss: 0.4, acc: 0.9", {"loss": 0.5, "accuracy": 0.9}),
        ("New best model at epoch 7, val_loss: 0.5", {}),
        ("Class 3 accuracy: 81.2%", {}),
        ("epoch 2 ctc_cost: 0.56 s, loss: 0.5", {"loss": 0.5}),
        ("loss_mask: 0.5", {}),
        ("Car AP@0.70, 0.50, 0.50:", {}),
        ("D_KERNEL_MAP=512", {}),
        ("epoch 1 acc (higher is better) : 0.5", {"accuracy": 0.5}),
        ("EURUSD order 7 stop_loss=1.075 take_profit=1.09", {}),
        ("epoch 1 loss_parse_time: 0.5", {}),
        ("epoch 1 masked_lm_loss: 0.5", {"masked_lm_loss": 0.5}),
        ("Trial 7 finished with value: 0.25 and parameters: {'x': 0.5}", {"trial_value": 0.25}),
        ("step 3 value: 0.25", {}),
        ("3 batches, 0.75 loss, 91.5% accuracy", {"loss": 0.75, "accuracy": 91.5}),
        ("-9.5 per-word bound, 730.25 perplexity estimate on 9 texts", {"perplexity": 730.25}),
        (
            "Episode 10  Last reward: 20.00  Average reward: 14.5",
            {"last_reward": 20, "reward": 14.5},
        ),
        ("mean/median reward 21.5/21.0", {"mean_reward": 21.5, "median_reward": 21.0}),
        ("4:  learn 0.635passed: 17.4 sec", {"train_loss": 0.635}),
        (
            "step 10 | train 3.5 | val 3.25 | ppl 25.8",
            {"train_loss": 3.5, "val_loss": 3.25, "val_perplexity": 25.8},
        ),
        ("Val. Loss: 0.5 | Val. PPL: 1.65", {"val_loss": 0.5, "val_perplexity": 1.65}),
        ("round 3 score: 18", {}),
        ("ep=00 tr=['a'] loss=2.5 valid=dev loss=1.5", {"loss": 2.5, "val_loss": 1.5}),
        ("At iteration 7, Eval Char error rate=10.5", {"eval_char_error_rate": 10.5}),
        ("Dataset Size: 1%, Epoch: 1, Train Loss: 11.5", {"train_loss": 11.5}),
        ("Round 3 \\Eval metrics: loss=0.5", {"eval_loss": 0.5}),
        ("Batch: 3 acc: 3.0/4.0=0.75", {"accuracy": 0.75}),
        ("Epoch 3 MIoU1:0.5, FWIoU1:0.75", {"miou1": 0.5}),
        (
            "Dev: acc: 0.75, p: 0.5, r: 0.25, f: 0.375",
            {"val_accuracy": 0.75, "val_precision": 0.5, "val_recall": 0.25, "val_f1": 0.375},
        ),
        ("step 9, policy=6.0 mse=0.25 reg=0.5 total=6.75", {"mse": 0.25, "total_loss": 6.75}),
        ("step 9, policy=6.0 mse=0.25 time=0.5 total=6.75", {"mse": 0.25}),
    ],
)
def test_names_and_values_are_told_by_the_words_around_them(line, expected) -> None:
    assert {point.metric: point.value for point in Automatic().points(line)} == expected


@pytest.mark.parametrize(
    ("text", "metric", "expected"),
    [
        ("#Training epoch 1\n#Valid loss: 1.5\n#\n#Training epoch 2\n#Valid loss: 1.25\n",
         "val_loss", [(1.5, None, 1), (1.25, None, 2)]),
        ("# train loss: 1.5\n", "train_loss", []),
        ("fit:  67%|##| 2/3 [10:35<05:17, 317.98s/it][SVM]Iteration 1, loss = 0.5\n"
         "Iteration 2, loss = 0.25\n",
         "loss", [(0.5, 1, None), (0.25, 2, None)]),
        ("[2031-04-17 09:42:26] INFO     [acme.run:81, rank=0] [step=10/900]\n  train/Loss=1.5\n"
         "[2031-04-17 09:42:38] INFO     [acme.run:81, rank=0] [step=20/900]\n  train/Loss=1.0\n",
         "train_loss", [(1.5, 10, None), (1.0, 20, None)]),
        ("INFO:acme.py:Dev set evaluation\nINFO:acme.py:MRR: 0.5\n"
         "100%|##| 9/9 [00:46<00:00,  8.60s/it]INFO:acme.py:Test set evaluation\n"
         "INFO:acme.py:MRR: 0.25\n",
         "val_mrr", [(0.5, None, None)]),
        ("Epoch 3: WER=91.5%\nEpoch 4: WER=98.5%\nEpoch 5: WER=100%\n",
         "wer", [(91.5, None, 3), (98.5, None, 4), (100, None, 5)]),
        ("# epoch 0\n%WER 18.5% [9914 / 52576, 1012 ins, 1317 del, 7585 sub ]\n",
         "wer", [(18.5, None, 0)]),
        ("episode: 0/900, score: 21, e: 1.0\nepisode: 1/900, score: 10, e: 0.98\n",
         "score", [(21, 0, None), (10, 1, None)]),
        ("Gen: 1, best: 120, avg: 98.5\nGen: 2, best: 124, avg: 99.5\n",
         "fitness", [(120, 1, None), (124, 2, None)]),
        (" 3/90 [>...] - ETA: 33:37 - loss: 44.25Batch 3: Invalid loss\n"
         " 4/90 [>...] - ETA: 25:09 - loss: inf \n",
         "loss", [(44.25, 3, None), (inf, 4, None)]),
        ("ep=00 loss=2.5 valid=dev loss=1.5\nep=01 loss=2.25 valid=dev loss=1.25\n",
         "val_loss", [(1.5, None, 0), (1.25, None, 1)]),
        ("ep=00 loss=2.5 reward=1.5\n", "reward", [(1.5, 0, None)]),
        ("epoch   iteration   main/loss   validation/main/loss  main/acc\n"
         "0       100         1.25                              0.5\n"
         "0       200         -0.00548435                        0.625\n"
         "0       300         0.75        1.5                   0.75\n",
         "val_loss", [(1.5, 300, 0)]),
        ("epoch: 0|step: 7|act_loss: 0.5\naverage reward score: 0.25\n"
         "epoch: 0|step: 8|act_loss: 0.5\naverage reward score: 0.75\n",
         "reward_score", [(0.25, 7, 0), (0.75, 8, 0)]),
    ],
)  # fmt: skip
def test_lines_around_a_line_count(text, metric, expected) -> None:
    found = [point[1:4] for point in read(text) if point.metric == metric]
    assert found == expected


def test_the_results_of_a_client_of_a_server_are_read() -> None:
    found = series(
        "Output token throughput (tok/s):         250.50\n"
        "---------------Time to First Token----------------\n"
        "Mean TTFT (ms):                          250.00\n"
        "P99 TTFT (ms):                           1500.00\n"
        "-----Time per Output Token (excl. 1st token)------\n"
        "Mean TPOT (ms):                          31.25\n"
    )
    assert found == {
        "latency_first_token_seconds": [0.25],
        "latency_first_token_p99_seconds": [1.5],
        "latency_token_seconds": [0.03125],
    }
    assert latencies(found)[0] == "latency_first_token_seconds"


def test_a_printed_configuration_has_no_points() -> None:
    assert series("train:\n  base_lr: 0.001\n  f_loss: 1.0\n  xy_loss: 5.0\n  steps: 500\n") == {}
    assert series("val_loss: 0.5\n") == {"val_loss": [0.5]}
