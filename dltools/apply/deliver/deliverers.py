"""What delivers models, on several engines, used as one."""

from __future__ import annotations

from collections.abc import Callable

from dltools.apply.deliver.deliverer import Deliverer
from dltools.plan.records import Result

OnResult = Callable[[Result], None]


class Deliverers:
    """The deliverers of the engines that answer, which `each` returns."""

    def __init__(self, each: Callable[[], list[Deliverer]]) -> None:
        self._each = each

    def retry(self, on_result: OnResult) -> list[Result]:
        """Report the hooks that have ended, and try again the deliveries that are due."""
        return [result for deliverer in self._each() for result in deliverer.retry(on_result)]

    def finish(self, on_result: OnResult) -> list[Result]:
        """Wait for the hooks that run, and report them."""
        return [result for deliverer in self._each() for result in deliverer.finish(on_result)]

    def stop(self) -> None:
        """Kill the hooks that run."""
        for deliverer in self._each():
            deliverer.stop()

    def seconds_until_due(self) -> float | None:
        """Return how long until `retry` has something to do, None if it never has."""
        due = [deliverer.seconds_until_due() for deliverer in self._each()]
        return min((seconds for seconds in due if seconds is not None), default=None)
