"""Signals that end a dl-apply."""

import os
import signal
from collections.abc import Iterator

import pytest

from dltools.cli.apply.plan_stream import FirstSignal


class Freed:
    """Gets a signal while it is freed, where Python drops what the handler raises."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self._number)
        for _ in range(1000):
            pass


@pytest.fixture
def signals() -> Iterator[FirstSignal]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    made = FirstSignal()
    yield made
    made.close()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_whose_exception_was_lost_ends_the_run_at_a_check(signals, number, error) -> None:
    signals.check()
    made = Freed(number)
    del made
    with pytest.raises(error):
        signals.check()


def test_a_signal_that_nohup_ignores_ends_no_run(signals) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    under_nohup = FirstSignal()
    os.kill(os.getpid(), signal.SIGHUP)
    under_nohup.check()
    signals.check()
    under_nohup.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_it_ends_a_wait_that_begins_after_the_check(signals) -> None:
    """It came in between, and a select would have waited for a plan for ever."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb"):
        signals.check()
        made = Freed(signal.SIGINT)
        del made
        assert not signals.wait_for(stream, None)
        with pytest.raises(KeyboardInterrupt):
            signals.check()


def test_a_stream_is_waited_for(signals) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as other:
        assert not signals.wait_for(stream, 0.01)
        other.write(b"x")
        assert signals.wait_for(stream, None)
