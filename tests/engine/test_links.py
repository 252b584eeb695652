"""The engines of a run, which threads add while others look."""

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from dltools.engine.links import DistinctEngines
from dltools.errors import UnavailableError


def engine(name: str) -> Any:
    return SimpleNamespace(id=f"id of {name}", host=name)


def test_engines_that_come_meanwhile_disturb_nobody_who_looks() -> None:
    engines = DistinctEngines()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    faults: list[BaseException] = []

    def look() -> None:
        try:
            while len([*engines.values()]) < 2000:
                pass
        except BaseException as error:
            faults.append(error)

    def add(first: int) -> None:
        for number in range(first, 2000, 2):
            engines.add(engine(str(number)), f"at {number}")

    adding = [threading.Thread(target=add, args=(first,)) for first in (0, 1)]
    threads = [threading.Thread(target=look), *adding]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert faults == []
    assert len(engines) == 2000


def test_one_that_comes_back_takes_the_place_of_the_one_before() -> None:
    engines = DistinctEngines()
    engines.add(engine("a"), "at a")
    back = engine("a")
    engines.add(back, "at a")
    assert dict(engines) == {"a": back}
    with pytest.raises(UnavailableError, match="host name"):
        engines.add(SimpleNamespace(id="other", host="a"), "at b")  # type: ignore[arg-type]
