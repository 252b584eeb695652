"""Time as a test sets it."""

from dataclasses import dataclass


@dataclass
class Clock:
    """A clock that stands, but for whoever sleeps by it (s)."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
