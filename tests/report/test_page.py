"""The HTML page."""

from dltools.report.page import Picture, Table, page
from dltools.report.result_tables import cells


def test_a_page_escapes_what_it_is_told() -> None:
    table = cells([{"run": "<script>alert(1)</script>", "makespan": 1.0}])
    text = page('"<b>', [Table("<i>", table)], None, "<u>")
    for tag in ("<script>", "<b>", "<i>", "<u>"):
        assert tag not in text


def test_a_long_table_stands_behind_the_picture() -> None:
    runs = Table("Runs", cells([{"run": "a", "makespan": 1.0}]))
    jobs = Table("Jobs", cells([{"run": "a", "job": f"job-{number}"} for number in range(21)]))
    picture = Picture("Jobs done", b"<svg></svg>")
    text = page("a", [jobs, runs], picture, "")
    assert text.index(">Runs<") < text.index("<figure") < text.index(">Jobs<")


def test_a_cell_is_one_line_and_a_wide_table_scrolls() -> None:
    text = page("a", [Table("Jobs", cells([{"job": "cnn-8", "finish": 122.6}]))], None, "")
    assert "td, th { white-space: nowrap; }" in text
    assert '<div class="wide"><table>' in text
