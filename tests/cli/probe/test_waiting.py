"""dl-probe waits for an engine that goes away, and goes on with the sample that it missed."""

from typing import Any, cast

import pytest

from dltools.cli.probe import run
from dltools.errors import UnavailableError


class Away:
    """A sampler whose engine is away for so many calls after its first sample."""

    def __init__(self, calls: int) -> None:
        self.calls, self.left, self.resumed = 0, calls, 0

    def sample(self) -> list[dict[str, Any]]:
        self.calls += 1
        self._answer()
        return [{"kind": "node"}]

    def resume(self) -> None:
        self._answer()
        self.resumed += 1

    def _answer(self) -> None:
        if self.calls > 1 and self.left:
            self.left -= 1
            raise UnavailableError("no Docker engine answers.")


def test_it_asks_again_and_resumes(capsys) -> None:
    sampler = Away(calls=3)
    sample = run._patient(cast(Any, sampler), 30.0)
    assert [sample(), sample(), sample()] == [[{"kind": "node"}]] * 3
    assert sampler.resumed == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("no Docker engine answers. retrying for 30 s")


def test_without_patience_the_error_ends_it(capsys) -> None:
    sample = run._patient(cast(Any, Away(calls=1)), 0.0)
    sample()
    with pytest.raises(UnavailableError):
        sample()
    assert capsys.readouterr().err == ""
