"""The HTML page."""

from __future__ import annotations

from dltools.report.cells import cells
from dltools.report.page import Table, page


def test_a_page_escapes_what_it_is_told() -> None:
    table = cells([{"run": "<script>alert(1)</script>", "makespan": 1.0}])
    text = page('"<b>', [Table("<i>", table)], [], "<u>")
    for tag in ("<script>", "<b>", "<i>", "<u>"):
        assert tag not in text
