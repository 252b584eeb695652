"""The keys of the live table."""

import io

import pytest
from cli.probe.test_live import sample
from rich.console import Console

from dltools.cli.probe.live import SORTS, Controls, live_view
from dltools.cli.screen import Event, keys_of
from dltools.observations.newest_rows import ObservedHosts
from dltools.observations.table import to_table

NAMES = [f"job-{number:02}" for number in range(30)]


class Live:
    """A live table of thirty containers on a screen of ten lines."""

    def __init__(self, height: int = 10) -> None:
        self.hosts = ObservedHosts()
        for second in (1, 3):
            rows = to_table(sample(second, NAMES)).to_pylist()
            for row in rows:
                if row["kind"] == "container":
                    number = NAMES.index(row["container_name"])
                    row |= {
                        "cpu_seconds": float(number * second),
                        "role": "training",
                        "role_reason": "reports loss",
                        "cpu_weight": 1024.0 + number,
                        "turn_seconds": 8.0 if number == 29 else None,
                    }
            self.hosts.take(rows)
        self.controls = Controls()
        self._console = Console(
            file=io.TextIOWrapper(io.BytesIO(), "utf-8"), width=80, height=height, color_system=None
        )

    def press(self, keys: str) -> list[Event | None]:
        found = []
        for key in keys_of(keys.encode()):
            found.append(self.controls.press(key))
            self.lines()
        return found

    def lines(self) -> list[str]:
        with self._console.capture() as capture:
            self._console.print(live_view(self.hosts, self._console, self.controls))
        return [line.rstrip() for line in capture.get().splitlines()]

    @property
    def names(self) -> list[str]:
        return [line.split()[0] for line in self.lines() if line.startswith("job-")]


@pytest.fixture
def live() -> Live:
    made = Live()
    assert made.names == NAMES[:5]
    return made


def test_it_scrolls_and_stops_at_the_ends(live) -> None:
    assert live.press("k") == [None]
    assert live.press("jj\x1b[B") == [Event.CHANGED] * 3
    assert live.names[0] == "job-03"
    assert live.lines()[-1] == "and 22 more, 3 above"
    live.press("\x1b[6~")
    assert live.names[0] == "job-08"
    live.press("\x1b[6~" * 9)
    assert live.names == NAMES[-5:]
    assert live.press("j") == [None]
    live.press("\x1b[5~" * 9)
    assert live.names == NAMES[:5]


def test_it_sorts_by_each_column_and_back(live) -> None:
    live.press("s")
    assert live.names[0] == "job-29"
    assert live.lines()[-1] == "and 25 more  by CPU"
    live.press("s" * (len(SORTS) - 1))
    assert live.names == NAMES[:5]


def test_q_quits_and_other_keys_do_nothing(live) -> None:
    assert live.press("q") == [Event.QUIT]
    assert set(live.press("abcxyz \t\x1bq\x1b[5;5~/?")) == {None}
