"""How long a job says that it will train, in the words of real logs."""

import pytest
from helpers.excerpts import read


def said(log: str) -> tuple[int | None, int | None]:
    """Return what is said last with a point of a log: how many epochs, and how many steps."""
    points = read(log.encode())
    assert points, log
    every = [(one.epochs, one.steps) for one in points]
    return next((one for one in reversed(every) if one != (None, None)), (None, None))


@pytest.mark.parametrize(
    ("line", "epochs", "steps"),
    [
        ("Epoch 3/10, Loss: 0.52", 10, None),
        ("[epoch 1/4] loss=2.25", 4, None),
        ("epoch: 56/300, iter: 10/20, loss: 0.52", 300, None),
        ("Epoch 3 of 12 loss 0.52", 12, None),
        ("Epoch:[1/3](10/39695) loss:0.52", 3, None),
        # What follows an epoch's number is no number of epochs in these.
        ("Epoch: [3][40/500] Loss 0.52", None, None),
        ("Train Epoch: 1 [10000/60000 (17%)]\tLoss: 0.523456", None, None),
        ("| epoch 001:    100 / 3000 loss=9.25", None, None),
        ("Epoch 0:  50%|#####     | 1/2 [00:00<00:00, loss=0.52]", None, None),
        # One epoch says nothing, and the sixth of five is none.
        ("Epoch 1/1, Loss: 0.52", None, None),
        ("Epoch 6/5, Loss: 0.52", None, None),
        ("epoch 3/4/2026 loss: 0.52", None, None),
        ("step:276/6200 train_loss:0.52 train_time:1ms", None, 6200),
        ("step    1/19560 | loss 0.52", None, 19560),
        ("Iteration 30/500, loss: 0.52", None, 500),
        # Steps of an epoch, and of an evaluation.
        ("Epoch 8 Iter 200/391 loss 0.52", None, None),
        ("eval step 3/10 loss 0.52", None, None),
    ],
)
def test_a_line_says_how_many_epochs_or_steps(line, epochs, steps) -> None:
    assert said(f"{line}\n{line.replace('0.52', '0.51')}\n") == (epochs, steps)


@pytest.mark.parametrize(
    ("log", "epochs"),
    [
        ("Epoch 2/5\n  step 40/500 loss: 0.5200\n  step 80/500 loss: 0.5100\n", 5),
        ("Epoch 1/10 loss: 0.52\nEpoch 1/30 loss: 0.51\n", 30),
        ("step 1/50 loss 0.53\nEpoch 2/9 loss 0.52\nstep 2/70 loss 0.51\n", 9),
    ],
    ids=["heading", "last", "steps-before"],
)
def test_epochs_are_those_said_last(log, epochs) -> None:
    assert said(log) == (epochs, None)
