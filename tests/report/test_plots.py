"""What pictures draw, by the numbers in them."""

from __future__ import annotations

import pytest

from dltools.report.outcomes import JobResult
from dltools.report.run import Run

plots = pytest.importorskip("dltools.report.plots")
pytest.importorskip("matplotlib")


def drawn(run: Run, kind: str) -> list[tuple[list[float], list[float]]]:
    """The lines of a panel, as x and y."""
    figure = plots.picture(plots.panels([run], [kind], run.label))
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in figure.axes[0].lines]


def test_a_cdf_reaches_only_the_part_that_finished() -> None:
    done = [JobResult(str(n), "h", 0.0, 0.0, float(n)) for n in (1, 2, 3)]
    not_done = [JobResult("x", "h", 0.0, 0.0), JobResult("y", "h", 0.0, 0.0, exit_code=3)]
    served = [JobResult("s", "h", 0.0, 0.0, 9.0, served=9.0)]
    ((times, parts),) = drawn(Run("r", [[*done, *not_done, *served], done]), "cdf")
    assert parts[0] == 0
    assert max(parts) == parts[-1] == 6 / 8
    assert dict(zip(times, parts, strict=True))[1] == 2 / 8


def test_a_failed_job_says_so_in_the_chart() -> None:
    jobs = [JobResult("a", "h", 0.0, 0.0, 9.0), JobResult("b", "h", 0.0, 0.0, exit_code=3)]
    figure = plots.picture(plots.panels([Run("r", [jobs])], ["gantt"], "r"))
    assert "failed (3)" in [text.get_text() for text in figure.axes[0].texts]
