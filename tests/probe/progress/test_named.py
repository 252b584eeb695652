"""Well-known names with a value beside them, in text of any form."""

import json
import math
import time
from typing import Any

import pytest
from helpers.examples import examples
from helpers.log_text import lines_of
from hypothesis import given
from hypothesis import strategies as st

from dltools.probe.progress import Point
from dltools.probe.progress.clean_lines import LONGEST_LINE
from dltools.probe.progress.named import Named

NAMED = Named()


NONE = [
    "loss", "loss:", "loss: None", "loss scale: 131072", "loss.py:12", "loss 12:30",
    "loss: 12:30:01", "loss: 1.2.3", "loss: 0x10", "loss: 12ms", "loss: 5e",
    "my_loss_weight: 0.5", "lossless 5", "--x-loss: 5",
    "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 65536.0",
]  # fmt: skip
"""Lines that at most look as if they had a value."""


def _named(line: str) -> dict[str, float]:
    return {point.metric: point.value for point in Named().points(line)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Loss: 0.52 Accuracy: 0.91 Time: 12.1", {"loss": 0.52, "accuracy": 0.91}),
        ("step 8 loss 0.5 images/s 7758", {"loss": 0.5}),
        ("loss 0.5 s 12", {"loss": 0.5}),
        ("epoch 3 accuracy 0.91 samples/sec: 1200 loss 0.5", {"accuracy": 0.91, "loss": 0.5}),
        ("loss 0.5 s, images/s 7758", {}),
        ("loss\t0.5", {"loss": 0.5}),
        ("LOSS 0.5", {"loss": 0.5}),
        ("(loss: 0.5)", {"loss": 0.5}),
        ("val_loss: 0.4", {"val_loss": 0.4}),
        ("val loss=0.4", {"val_loss": 0.4}),
        ("valid_loss 0.4", {"val_loss": 0.4}),
        ("eval_loss=0.4", {"eval_loss": 0.4}),
        ("train/loss: 0.4", {"train_loss": 0.4}),
        ("Average loss: 0.4", {"loss": 0.4}),
        ("total_loss: 0.4", {"total_loss": 0.4}),
        ("acc: 0.9", {"accuracy": 0.9}),
        ("val_acc: 0.9", {"val_accuracy": 0.9}),
        ("accuracy: 91.2%", {"accuracy": 91.2}),
        ("ppl 33.1", {"perplexity": 33.1}),
        ("train loss 3.33, val loss 3.37", {"train_loss": 3.33, "val_loss": 3.37}),
        ("loss: tensor(0.12)", {"loss": 0.12}),
        ("loss: tensor(0.12, device='cuda:0', grad_fn=<NllLossBackward0>)", {"loss": 0.12}),
        ('{"loss": 0.5, "epoch": 1}', {"loss": 0.5}),
        ("{'loss': '0.5', 'learning_rate': '1e-05'}", {"loss": 0.5}),
        ("{'eval_loss': 0.5, 'eval_accuracy': 0.9}", {"eval_loss": 0.5, "eval_accuracy": 0.9}),
        ("Epoch: [3][40/500]\tTime 0.1 (0.2)\tLoss 0.5 (0.7)", {"loss": 0.5}),
        ("2026-01-31 12:30:01,250 INFO train.py:12 loss: 0.5", {"loss": 0.5}),
        (
            "1875/1875 [==============================] - 3s 2ms/step - loss: 0.2581"
            " - accuracy: 0.9254 - val_loss: 0.1368 - val_accuracy: 0.9600",
            {"loss": 0.2581, "accuracy": 0.9254, "val_loss": 0.1368, "val_accuracy": 0.96},
        ),
        (
            "Epoch 3: 100%|██████████| 1875/1875 [00:12<00:00, 150.2it/s, v_num=0, loss=0.31]",
            {"loss": 0.31},
        ),
        *((line, {}) for line in NONE),
        *((f"loss: {comma}", {}) for comma in ("0,5", "1,2", "12,34", "1,000,00")),
    ],
)
def test_named_values_are_found(line, expected) -> None:
    assert _named(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5.", 5.0), (".5", 0.5), ("-0.5", -0.5), ("1e-3", 0.001), ("1.5E+02", 150.0),
        ("1,234", 1234.0), ("12,345,678.9", 12345678.9), ("-inf", -math.inf),
        ("Infinity", math.inf), ("0.30000000000000004", 0.30000000000000004),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["loss: {}", "loss={}", "loss {} next", "{{'loss': {}}}"])
def test_numbers_are_read_as_programs_print_them(text, expected, form) -> None:
    assert _named(form.format(text)) == {"loss": expected}


@pytest.mark.parametrize("text", ["nan", "NaN", "NAN", "-nan", "tensor(nan)"])
def test_a_diverged_loss_is_reported(text) -> None:
    (value,) = _named(f"Loss: {text} Time: 12.1").values()
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("line", "step", "epoch"),
    [
        ("Step: 400 loss 0.5", 400, None),
        ("global step 300 loss 0.5", 300, None),
        ("iter #7 loss 0.5", 7, None),
        ("loss 0.5 at step 9", 9, None),
        ("step 1.5 loss 0.5", None, None),
        ("2ms/step - loss: 0.5", None, None),
        ("Epoch 3/10 loss 0.5", None, 3.0),
        ("Epoch [3/10], Step [40/500], Loss: 0.5", 40, 3.0),
        ("{'loss': '0.5', 'step': '40', 'epoch': '1.5'}", 40, 1.5),
        ("Step: 1,234 loss: 0.5", 1234, None),
        ("{'loss': 0.5, 'step': 40, 'epoch': 1.5}", 40, 1.5),
        ("step " + "9" * 18 + " loss 0.5", 10**18 - 1, None),
        ("step " + "9" * 30 + " loss 0.5", None, None),
    ],
)
def test_step_and_epoch_are_found(line, step, epoch) -> None:
    found = Named().points(line)  # a line that comes again counts once
    assert {(point.step, point.epoch) for point in found} == {(step, epoch)}


def test_a_point_names_its_source() -> None:
    assert NAMED.points("epoch 2 step 3 loss 0.5") == [Point("loss", 0.5, 3, 2.0, "named", "loss")]


def _seconds(raw: bytes, extractor: Any = NAMED) -> float:
    """The least CPU time of five runs."""
    taken = []
    for _ in range(5):
        start = time.process_time()
        for line in lines_of(raw):
            extractor.points(line)
        taken.append(time.process_time() - start)
    return min(taken)


@pytest.mark.parametrize(
    "raw",
    [
        lambda n: b"x" * n,
        lambda n: b"loss: 0.5 " * (n // 10),
        lambda n: b"loss " * (n // 5),
        lambda n: b"loss: " + b"1" * n,
        lambda n: b"loss: " + b"1,111" * (n // 5),
        lambda n: b"loss" + b" " * n,
        lambda n: b"val_" * (n // 4),
        lambda n: b"step" * (n // 4) + b" loss 1",
        lambda n: b"loss 1 step" + b" " * n,
        lambda n: b"loss 1 step" + b" " * (n // 2) + b"step" + b" " * n,
        lambda n: b"loss 1 epoch" + b" " * n,
        lambda n: b"loss 1 epoch" + b"=" * n,
        lambda n: b"loss 1 step " + b"9" * n,
        lambda n: b"\x1b[" * (n // 2),
        lambda n: b"\x1b[" + b"0;" * (n // 2),
        lambda n: b"\xff" * n,
    ],
    ids=lambda raw: repr(raw(50)[:20]),
)
def test_a_long_line_takes_time_in_proportion(raw) -> None:
    """Ten times the length takes some 10 times as long, and would take 100 times in squares; what
    is longer than a line may be is dropped."""
    short, long, longest = (_seconds(raw(n)) for n in (LONGEST_LINE // 10, LONGEST_LINE, 10**6))
    assert long < 40 * max(short, 0.0001)
    assert longest < 40 * max(long, 0.0001)


def test_values_far_into_a_long_line_are_not_looked_for() -> None:
    (line,) = lines_of(b"loss: 0.5" + b" " * LONGEST_LINE + b"accuracy: 0.9")
    assert _named(line) == {"loss": 0.5}


@examples(100)
@given(
    value=st.floats(allow_nan=False),
    separator=st.sampled_from([": ", "=", " ", ":", " = "]),
    name=st.sampled_from(["loss", "Loss", "val_loss", "accuracy", "val_acc", "train loss"]),
)
def test_any_number_that_python_prints_is_read_back(value, separator, name) -> None:
    (found,) = NAMED.points(f"{name}{separator}{value!r}")
    assert found.value == value


@examples(50)
@given(loss=st.floats(), epoch=st.integers(0, 10**6), step=st.integers(0, 10**15))
def test_a_json_line_is_read_back(loss, epoch, step) -> None:
    (point,) = NAMED.points(json.dumps({"epoch": epoch, "step": step, "loss": loss}))
    assert point.value == loss or math.isnan(loss)
    assert (point.step, point.epoch) == (step, float(epoch))


def test_digits_in_a_name_belong_to_the_name() -> None:
    lines = ["step {} layer{} loss: 0.5", "step {} AP@0.{}: 0.5", "step {} acc@{}: 0.5"]
    known = Named()
    for _ in range(40):
        for line in lines:
            for number in (1, 25):
                text = line.format(7, number)
                assert repr(known.read(text)) == repr(Named().read(text))


@pytest.mark.parametrize(
    "line",
    [
        "12:00:0{},{}23 step {} loss: {}.5",
        "{},{}23 tokens, step {} loss: {}.5",
        "tps:{},{}23 step {} loss: {}.5",
    ],
)
def test_commas_of_clocks_and_thousands_are_told_from_others(line) -> None:
    known = Named()
    for digits in ("1111", "2222", "0300", "1203") * 10:
        text = line.format(*digits)
        assert repr(known.read(text)) == repr(Named().read(text))
        for odd in (text.replace(",", ",1"), text.replace("23", "2"), text.replace("23", "23,4")):
            assert repr(known.read(odd)) == repr(Named().read(odd))


def test_the_number_of_a_round_is_no_value() -> None:
    points = Named().points("INFO :  {'accuracy': [(1, 0.59), (2, 0.75)], 'loss': [(1, 0.5)]}")
    assert {(point.metric, point.value) for point in points} <= {("accuracy", 0.59), ("loss", 0.5)}


@pytest.mark.parametrize("before", ["Step ", "Train step ", "Iteration ", "Training step 3 "])
@pytest.mark.parametrize("bar", ["━━━━━━━ ", "━━━╸    ", "[ 5/5] ", "3/3 ━━━━━━━━ ", ""])
@pytest.mark.parametrize("after", ["5/25 0:00:48 • 0:00:00 0.48it/s", "5/25 0:00:48 • 0:00:00"])
def test_a_bar_of_steps_without_an_epoch_or_metrics_gives_no_point(
    before: str, bar: str, after: str
) -> None:
    reader = Named()
    assert reader.points(before + bar + after) == []
    assert [point.value for point in reader.points("step 6 loss 0.5")] == [0.5]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (" 20%|██   | 5/25 [00:48<00:10, 1.0it/s, accuracy: 12/500 (32%)]", {"accuracy": 0.024}),
        (" 20%|██   | 5/25 [00:48<00:10, 1.0it/s, acc=12/500, loss=0.3]",
         {"accuracy": 0.024, "loss": 0.3}),
        (" 20%|██   | 5/25 [00:48<00:10, 1.0it/s, loss=0.3, acc=12/500]",
         {"loss": 0.3, "accuracy": 0.024}),
    ],
)  # fmt: skip
def test_a_bar_may_have_a_share_beside_its_own_total(line: str, expected: dict[str, float]) -> None:
    assert _named(line) == expected
