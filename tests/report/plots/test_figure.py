"""What panels draw, by the numbers and texts in them; and how matplotlib is added."""

from typing import Any

import pytest

from dltools.observations.container_records import SeriesPoint
from dltools.observations.outcomes import JobResult
from dltools.plan.policy.interface import JobClass
from dltools.report.plots.figure import KINDS, WIDTH, panels, picture, rendered
from dltools.report.timelines import ClassChange, Run, Timeline


def axes_of(runs: list[Run], kind: str) -> list[Any]:
    pytest.importorskip("matplotlib")
    return list(picture(panels(runs, [kind])).axes)


def drawn(run: Run, kind: str) -> list[tuple[list[float], list[float]]]:
    (axes,) = axes_of([run], kind)
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]


def test_a_failed_job_says_so_in_the_chart() -> None:
    jobs = [JobResult("a", "h", 0.0, 0.0, 9.0), JobResult("b", "h", 0.0, 0.0, exit_code=3)]
    (axes,) = axes_of([Run("r", [jobs])], "gantt")
    assert "failed (3)" in [text.get_text() for text in axes.texts]


def test_the_word_for_a_late_failure_stays_off_the_legend() -> None:
    jobs = [JobResult("a", "h", 0.0, 0.0, 9.0), JobResult("b", "h", 0.0, 0.0, exit_code=3)]
    early, late = Run("r", [jobs]), Run("r", [jobs])
    early.timelines["b"], late.timelines["b"] = Timeline(ended=2.0), Timeline(ended=8.9)
    places = [axes_of([run], "gantt")[0].texts[0].get_ha() for run in (early, late)]
    assert places == ["left", "right"]


def test_a_chart_explains_grey_and_hollow_bars() -> None:
    run = Run("r", [[JobResult("a", "h", 0.0, 4.0, 9.0)]])
    (axes,) = axes_of([run], "gantt")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["running", "waiting"]


def test_a_chart_explains_the_classes_of_any_policy() -> None:
    own = JobClass("Z", "sleeping", "")
    run = Run("r", [[JobResult("a", "h", 0.0, 0.0, 9.0)]])
    run.timelines["a"] = Timeline(classes=[ClassChange(3.0, own)])
    (axes,) = axes_of([run], "gantt")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["Z sleeping", "no class yet"]
    assert [round(bar.get_width()) for bar in axes.patches] == [3, 6]


def test_runs_without_data_have_no_panels() -> None:
    assert panels([Run("r")], KINDS) == []


def test_panels_of_several_runs_name_them_and_share_their_time_axis() -> None:
    use = [SeriesPoint(0.0, 1.0), SeriesPoint(40.0, 1.0)]
    runs = [
        Run("one", timelines={"a": Timeline(use=use)}),
        Run("two", timelines={"a": Timeline(use=use[:1])}),
    ]
    found = panels(runs, ["limits"])
    assert [panel.title.rpartition(": ")[2] for panel in found] == ["one", "two"]
    assert len({axes.get_xlim() for axes in axes_of(runs, "limits")}) == 1


def test_jobs_that_use_no_cpu_are_drawn() -> None:
    use = [SeriesPoint(0.0, 0.0), SeriesPoint(9.0, 0.0)]
    run = Run("idle", timelines={"a": Timeline(use=use), "b": Timeline(bound=use, use=use)})
    assert panels([run], ["limits"])[0].title.endswith("0 to 1 each")
    assert {height for _, heights in drawn(run, "limits") for height in heights} == {0.0, 1.0}


def test_letters_without_a_font_give_no_warning(recwarn) -> None:
    pytest.importorskip("matplotlib")
    run = Run("r", [[JobResult("训练", "h", 0.0, 0.0, 9.0)]])
    for format_ in ("png", "svg", "pdf"):
        assert rendered(picture(panels([run], ["gantt"])), format_)
    assert [str(warning.message) for warning in recwarn] == []


def several_runs() -> list[Run]:
    def results(by: float) -> list[JobResult]:
        return [JobResult(f"a-job-with-a-name-{n}", "h", 0.0, 0.0, n * by) for n in (1, 2, 3, 4)]

    runs = [Run("noop", [results(2.0), results(2.0)]), Run("srtf", [results(1.0), results(1.5)])]
    points = [SeriesPoint(float(at), 1.0 / (1 + at)) for at in range(5)]
    runs[0].timelines = {"a": Timeline(use=points, metric="loss", progress=points)}
    return runs


@pytest.mark.slow
def test_text_has_twelve_pixels_on_a_page_of_a_laptop() -> None:
    pytest.importorskip("matplotlib")
    runs, width, screen_px = several_runs(), WIDTH, 900 - 32
    figure = picture(panels(runs, KINDS))
    rendered(figure, "svg")
    from matplotlib.text import Text

    texts = [one for one in figure.findobj(Text) if one.get_text().strip() and one.get_visible()]
    least = min(one.get_fontsize() for one in texts)
    assert least * screen_px / (72 * width) >= 12
    whole = figure.get_tightbbox()
    assert whole.x0 >= -0.03
    assert whole.x1 <= width + 0.03


@pytest.mark.slow
def test_a_pdf_is_always_the_same() -> None:
    pytest.importorskip("matplotlib")
    first, second = (rendered(picture(panels(several_runs(), KINDS)), "pdf") for _ in range(2))
    assert first.startswith(b"%PDF")
    assert first == second
