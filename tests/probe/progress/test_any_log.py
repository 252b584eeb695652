"""Logs of no family: what all logs have in common is read by one pipeline."""

import json

import pytest
from helpers.excerpts import read
from hypothesis import given, settings
from hypothesis import strategies as st

from dltools.probe.progress import Automatic, PointReader
from dltools.probe.progress.named import Named


def found(text: str) -> list[tuple[str, float, int | None, float | None]]:
    return [(point.metric, point.value, point.step, point.epoch) for point in read(text.encode())]


def values(text: str, metric: str) -> list[float]:
    return [point.value for point in read(text.encode()) if point.metric == metric]


@pytest.mark.parametrize(
    ("line", "step", "epoch"),
    [
        ("Epoch:[1/1](10/39695) loss:2.31 lr:0.1", 10, 1),
        ("Epoch: [3][40/500] Loss 0.51", 40, 3),
        ("Epoch 3/10 [40/500] - loss: 0.51", 40, 3),
        ("Epoch 3/10, 40/500, loss: 0.51", 40, 3),
        ("[3/10][40/500] Loss_D: 0.51", 40, 3),
        ("Iteration 254 | reward: 0.51", 254, None),
        ("{'loss': 0.51, 'current_steps': 10, 'total_steps': 90}", 10, None),
        ("[Batch 1/2] loss=0.51", 1, None),
        ("step:31K loss:0.51", 31_000, None),
        ("step:1.5M loss:0.51", 1_500_000, None),
        ("loss: 0.51 at global step 1,234 (batch 3)", 1234, None),
        ("[40/500] loss: 0.51", 40, None),
        ("iter 40 / 500 | loss 0.51", 40, None),
        ("Episode 7: reward = 0.51", 7, None),
        ("11/09 14:34:10 loss: 0.51", None, None),
        ("epoch=0.25 loss=0.51", None, 0.25),
        ("step-40, lr=1, loss=0.51", 40, None),
        ("INFO:utils:Epoch-3\tloss:0.51", None, 3),
    ],
)
def test_counters_have_one_grammar(line, step, epoch) -> None:
    (point,) = Automatic().points(line)
    assert (point.step, point.epoch) == (step, epoch)


def test_training_and_test_are_two_series() -> None:
    text = "".join(
        f"train epoch: {n}, loss: {2.5 / n}\ntest epoch: {n}, loss: {3.5 / n}\n" for n in (1, 2)
    )
    assert values(text, "train_loss") == [2.5, 1.25]
    assert values(text, "test_loss") == [3.5, 1.75]


STRAY = [
    "Config param dcn_bandwidth_latency: 50ms",
    'time=2026-01-31T12:00:00Z level=info train_loss=1 msg="ready"',
    "GET /health took 12ms",
]


@pytest.mark.parametrize("stray", STRAY)
def test_a_stray_line_does_not_switch_the_generic_reader_off(stray) -> None:
    lines = [f"INFO custom step {n}: dpo loss {2.5 - n / 1000}" for n in range(500)]
    text = "\n".join([stray, *lines[:250], stray, *lines[250:]])
    assert len(values(text, "dpo_loss")) == 500


def test_the_generic_reader_comes_back_when_a_family_falls_silent() -> None:
    first = [f"Epoch: [1][{n}/5005]\tLoss 0.5{n} (0.7)" for n in range(30)]
    second = [f"phase two, update {n} => gan loss: 0.3{n}" for n in range(500)]
    assert len(values("\n".join(first + second), "gan_loss")) >= 290


NOISE = [
    "average_loss: 51200",
    "val_loss = 0",
    "ERROR 08-01 10:00:00 engine.py:12 failed",
    "case 3: expected=14 extracted=14",
    "input_ids: 101",
    "percentage: 12.5",
    "placement: 3",
    "    loss = 0.0  # sum over batches",
    "parser.add_argument('--loss', default=0.5)",
    "loss_weight: 0.5, reward_scale: 2.0",
    "target_accuracy: 0.75",
    "self.best_val_loss = 1000.5",
]


@pytest.mark.parametrize("noise", NOISE)
def test_a_line_of_settings_or_code_gives_no_point(noise) -> None:
    lines = [f"it {n} - loss {3.5 - n / 100}" for n in range(40)]
    assert [one[0] for one in found("\n".join([noise, *lines]))] == ["loss"] * 40


def test_a_doubtful_series_waits_for_its_second_line() -> None:
    log = PointReader(Automatic())
    assert log.feed(b"loss = 0.75\n") == []
    assert [p.value for p in log.feed(b"loss = 0.5\n")] == [0.75, 0.5]
    assert [p.value for p in log.feed(b"loss = 0.25\n")] == [0.25]
    assert log.feed(b"loss = 0\n") == []


def test_an_equal_step_is_a_new_point_if_nothing_was_redrawn() -> None:
    lines = [f"step 10 epoch 0.01 loss: {n}.5" for n in range(5)]
    assert len(found("\n".join(lines))) == 5
    assert len(found("\n".join(lines[:1] * 5))) == 1
    assert len(found("\r".join(lines))) == 1


def test_a_point_that_is_printed_twice_counts_once() -> None:
    lines = [
        line
        for n in range(9)
        for line in (f"2026-01-31 12:00:0{n} INFO step {n} loss: {n}.5", f"step {n} loss: {n}.5")
    ]
    assert found("\n".join(lines)) == [("loss", n + 0.5, n, None) for n in range(9)]


def test_a_run_that_is_appended_has_its_own_points() -> None:
    run = [f"step {n} loss: {9 - n}.5" for n in range(9)]
    assert len(found("\n".join(run + run))) == 18


PREFIXES = {
    "Docker's json-file": '{"log":"LINE\\n","stream":"stdout","time":"2026-01-31T12:00:00.5Z"}',
    "CRI": "2026-01-31T12:00:0N.123456789Z stdout F LINE",
    "docker logs -t": "2026-01-31T12:00:0N.123456789Z LINE",
    "journald": "Jan 31 12:00:0N gpu-7 train.sh[1234]: LINE",
    "journald, short-iso": "2026-01-31T12:00:0N+0000 gpu-7 train[12]: LINE",
    "journald, JSON": '{"__REALTIME_TIMESTAMP": "176986080N000000", "MESSAGE": "LINE"}',
    "kubectl": "[pod/job-x7/main] LINE",
    "compose": "trainer-1  | LINE",
    "Slurm": "0: LINE",
    "torchrun": "[rank0]: LINE",
    "torchrun, tee": "[default0]:LINE",
    "mpirun": "[1,0]<stdout>:LINE",
    "Ray": "(RayTrainWorker pid=731, ip=10.0.0.7) LINE",
    "two of them": "2026-01-31T12:00:0NZ stdout F [rank0]: LINE",
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "line", ["iter {n}: loss {n}.25, time 20.5ms", "custom step {n} | loss {n}.25"]
)
def test_a_prefix_is_peeled(prefix, line) -> None:
    text = "\n".join(
        PREFIXES[prefix].replace("N", str(n)).replace("LI" + str(n) + "E", line.format(n=n))
        for n in range(9)
    )
    assert found(text) == [("loss", n + 0.25, n, None) for n in range(9)]


def test_a_bar_in_docker_s_file_is_redrawn() -> None:
    bars = "".join(f"\r10%|#  | {n}/9 [00:01<00:02, 1.1it/s, loss=0.{n}5]" for n in (1, 1, 2))
    record = {"log": bars, "stream": "stderr", "time": "2026-01-31T12:00:00.5Z"}
    assert [p.step for p in read(json.dumps(record).encode())] == [1, 2]


@pytest.mark.parametrize(
    "form",
    [
        "{rank}: step {n} loss: {n}.{rank}5",
        "[rank{rank}]: step {n} loss: {n}.{rank}5",
        "(Worker pid={rank}) step {n} loss: {n}.{rank}5",
        "[1,{rank}]<stdout>:step {n} loss: {n}.{rank}5",
        # It may stand inside of the line.
        "[GPU{rank}] Epoch {n} | Batchsize: 32 | Steps: 64 | Loss: {n}.{rank}5",
        "Rank {rank}, Epoch {n}, Loss: {n}.{rank}5",
        "Epoch {n}/30, rank={rank}, loss={n}.{rank}5",
        "12:00:00,123 INFO [train.py:542] ({rank}/5) Epoch {n}, batch 10, loss {n}.{rank}5",
        "INFO [rank {rank}] step {n} loss: {n}.{rank}5",
    ],
)
def test_one_of_five_ranks_is_followed(form) -> None:
    lines = [form.format(rank=rank, n=n) for n in range(30) for rank in (3, 0, 1, 2, 4)]
    assert values("\n".join(lines), "loss") == [n + 0.35 for n in range(30)]


@pytest.mark.parametrize(
    "form",
    [
        "epoch {n} loss: {n}.5, gpu 1{n} GiB",
        "epoch {n} loss: {n}.5, rank: {n}",
        "epoch {n} loss: {n}.5, worker {n}%",
        "[GPU 1] epoch {n} loss: {n}.5",
        "Rank 16, epoch {n}, loss: {n}.5",
    ],
)
def test_what_changes_with_the_step_is_no_rank(form) -> None:
    lines = [form.format(n=n) for n in range(30)] * 3
    assert values("\n".join(lines), "loss") == [n + 0.5 for n in range(30)] * 3


def parts(line: str, size: int) -> list[str]:
    return [line[at : at + size] for at in range(0, len(line), size)]


def entries(text: str, size: int, stream: str = "stderr") -> list[str]:
    """Text as Docker's json-file has it: a line that is too long is cut into entries."""
    return [
        json.dumps({"log": part, "stream": stream, "time": "2026-01-31T12:00:00.5Z"})
        for line in text.splitlines(keepends=True)
        for part in parts(line, size)
    ]


def of_cri(text: str, size: int) -> list[str]:
    """Text as CRI has it: P for a part of a line, F for the last one."""
    return [
        f"2026-01-31T12:00:00.123456789Z stderr {tag} {part}"
        for line in text.split("\n")
        for *some, last in [parts(line, size) or [""]]
        for tag, part in [*(("P", one) for one in some), ("F", last)]
    ]


BARS = "".join(f"\r10%|#  | {n}/999 [00:01<00:02, 1.1it/s, loss=0.{n}5]" for n in range(1, 900))
LONG = f"{'x' * 20_000} skipped\nstep 1 loss: 0.5\n{'y' * 40_000}\nstep 2 loss: 0.25\n"


@pytest.mark.parametrize(
    ("cut", "size"),
    [(entries, 4_096), (entries, 16_384), (of_cri, 7), (of_cri, 100), (of_cri, 16_384)],
)
def test_what_an_engine_cut_is_joined(cut, size) -> None:
    expected = found(BARS.replace("\r", "\n"))
    assert len(expected) == 899
    text = "\n".join(cut(BARS, size))
    assert found(text) == expected
    in_pieces = read(text.encode(), 999)
    assert [(p.metric, p.value, p.step, p.epoch) for p in in_pieces] == expected
    assert values("\n".join(cut(LONG, size)), "loss") == [0.5, 0.25]


def test_entries_of_two_streams_are_joined_apart() -> None:
    out, err = entries(BARS, 16_384, "stdout"), entries(BARS.replace("loss", "mse "), 16_384)
    text = "\n".join(entry for pair in zip(out, err, strict=True) for entry in pair)
    assert values(text, "loss") == values(text, "mse") == values(BARS, "loss")


def test_entries_without_line_ends_are_lines() -> None:
    text = "\n".join(entry for n in range(9) for entry in entries(f"step {n} loss: {n}.5", 99))
    assert values(text, "loss") == [n + 0.5 for n in range(9)]


@pytest.mark.parametrize("entry", ['{"log": 7}', '{"log":[]}', '{"log":', '{"log":{"loss":0.5}}'])
def test_an_entry_that_is_none_harms_nothing(entry) -> None:
    text = "\n".join([entry, *(f"step {n} loss: {n}.5" for n in range(9)), entry])
    assert values(text, "loss")[:9] == [n + 0.5 for n in range(9)]


def test_a_number_before_a_colon_may_be_the_step() -> None:
    lines = [f"{n}: loss {n}.5" for n in range(30)]
    assert len(found("\n".join(lines))) == 30


def test_another_rank_is_followed_when_the_first_one_falls_silent() -> None:
    lines = [f"[rank0]: step {n} loss: 0.{n}1" for n in range(5)]
    lines += [f"[rank1]: step {n} loss: 0.{n}2" for n in range(1000)]
    assert len(found("\n".join(lines))) > 700


def test_a_header_of_yolo_may_lack_the_memory() -> None:
    text = (
        "      Epoch   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "       1/10      1.721      3.791      5.175         30        640: 100%|#"
        "| 9/9 [00:24<00:00, 2.7s/it]\n"
    )
    assert found(text)[0] == ("box_loss", 1.721, 9, 1)


MARK = (
    ':::MLLOG {"key": "eval_accuracy", "value": %d,'
    ' "metadata": {"metric": "FID", "step_num": %d}}\n'
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("     Learning iteration 10/1500\n  Mean reward: 12.34\n", [("reward", 12.34, 10, None)]),
        ("[batch=20/1000]:\n  Train loss/total: 11.25\n", [("train_loss_total", 11.25, 20, None)]),
        ("Train: 3 [   0/1251 (  0%)]  Loss: 6.95 (6.95)\n", [("loss", 6.95, 0, 3)]),
        ("x.py:48] [100] accuracy=0.25, loss=0.75\n",
         [("accuracy", 0.25, 100, None), ("loss", 0.75, 100, None)]),
        ("0 [D loss: 0.75, acc.: 3.25%]\n",
         [("d_loss", 0.75, 0, None), ("accuracy", 3.25, 0, None)]),
        ("epoch: 1 step: 1875, loss is 0.25\n", [("loss", 0.25, 1875, 1)]),
        ("(epoch: 1, iters: 100) D_A: 0.25 cycle_A: 0.75\n",
         [("d_a", 0.25, 100, 1), ("cycle_a", 0.75, 100, 1)]),
        ("Train Epoch: 2 [5/9] Loss: 0.5\nTest set: Average loss: 0.25\n",
         [("loss", 0.5, 5, 2), ("test_loss", 0.25, None, 2)]),
        ("epoch: 1 mean dice: 0.25 best mean dice: 0.75\n", [("dice", 0.25, None, 1)]),
        ("Final test accuracy: 0.91\n", [("test_accuracy", 0.91, None, None)]),  # a single result
        # A heading says the epoch of the lines below.
        ("".join(f"==== Epoch {n} ====\nloss: 0.{n}5\n" for n in (1, 2, 3)),
         [("loss", 0.15, None, 1), ("loss", 0.25, None, 2), ("loss", 0.35, None, 3)]),
        # A bar that is not drawn for each dict says no step.
        ("\r  1%|          | 10/1635 [00:12<33:20,  1.23s/it]\n"
         "{'loss': 1.5, 'learning_rate': 9e-05, 'epoch': 0.01}\n"
         "{'loss': 1.25, 'learning_rate': 9e-05, 'epoch': 0.01}\n"
         "{'loss': 1.25, 'learning_rate': 9e-05, 'epoch': 0.01}\n"
         "{'loss': 1.0, 'learning_rate': 9e-05, 'epoch': 0.01, 'step': 30}\n",
         [("loss", 1.5, 10, 0.01), ("loss", 1.25, None, 0.01), ("loss", 1.0, 30, 0.01)]),
        # What a trainer's evaluation says is read under any name.
        ("{'eval_loss': 0.5, 'eval_mine': 0.25, 'eval_runtime': 3.5, 'epoch': 0.2}\n",
         [("eval_loss", 0.5, None, 0.2), ("eval_mine", 0.25, None, 0.2)]),
        # The metadata of a mark may name the metric.
        (MARK % (512, 512) + MARK % (1024, 1024),
         [("eval_fid", 512, 512, None), ("eval_fid", 1024, 1024, None)]),
        # A table has its names in a row of their own.
        ("  epoch    train_loss    valid_acc    placement     dur\n"
         "-------  ------------  -----------  -----------  ------\n"
         "      1        0.6905       0.5150            3  0.0452\n"
         "      2        0.6648       0.5400            3  0.0317\n",
         [("train_loss", 0.6905, None, 1), ("val_accuracy", 0.515, None, 1),
          ("train_loss", 0.6648, None, 2), ("val_accuracy", 0.54, None, 2)]),
        ("| Step | Training Loss | Validation Loss |\n|---|---|---|\n| 10 | 0.5 | 0.75 |\n",
         [("train_loss", 0.5, 10, None), ("val_loss", 0.75, 10, None)]),
    ],
)  # fmt: skip
def test_counters_stand_where_programs_put_them(text, expected) -> None:
    assert found(text) == expected


@given(
    st.sampled_from(
        ["step {s}: loss {v}", "Loss: {v} at it {s}, lr 1e-3", "[{s}] x loss={v}", "e {v}"]
    ),
    st.lists(st.tuples(st.integers(0, 10**17), st.floats(allow_infinity=False)), max_size=60),
)
def test_a_shape_that_is_known_reads_as_a_new_one(form, numbers) -> None:
    known = Named()
    for step, value in numbers:
        line = form.format(s=step, v=value)
        assert repr(known.read(line)) == repr(Named().read(line))


PIECES = [
    "Training", "Test:", "Step", "Train step 3", "Epoch 3/5", "Best epoch: 4", "loss: 0.5",
    "val_loss=0.3", "acc 91.2%", "accuracy: 12/500 (32%)", "━━━━━━", "[5/25]", " 20%|██   |",
    "5/25", "0:00:48 • 0:00:00", "[00:48<00:10, 1.0it/s]", "{'loss': 0.5, 'epoch': 1.0}",
    "4s 2ms/step", "saved to x.pt", "improved from 0.3 to 0.2", "1/0", "nan", "•", "|", "(",
]  # fmt: skip
"""What the lines of trainings are made of."""


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), max_size=20))
@settings(max_examples=1000)
def test_no_line_of_known_pieces_is_an_error(lines) -> None:
    reader = Named()
    values = [point.value for line in lines for point in reader.points(" ".join(line))]
    assert {value for value in values if value == value} <= {0.5, 0.3, 0.2, 91.2, 12, 12 / 500, 32}


def test_a_round_value_of_a_known_series_counts() -> None:
    lines = [f"my_loss: 0.{9 - n} my_accuracy: 0.{n}" for n in range(1, 5)]
    log = "\n".join([*lines, "my_loss: 0.01 my_accuracy: 1.0"])
    assert (values(log, "my_loss")[-1], values(log, "my_accuracy")[-1]) == (0.01, 1.0)
