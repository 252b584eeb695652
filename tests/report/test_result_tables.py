"""Rows as cells of text."""

from dltools.report.result_tables import cells, markdown


def test_cells_show_ratios_and_leave_out_what_is_empty() -> None:
    rows = [
        {"run": "a|b", "makespan": 10.0, "makespan_ratio": 1.0, "satisfied": None},
        {"run": "c", "makespan": None, "makespan_ratio": None, "satisfied": None},
    ]
    found = cells(rows)
    assert (found.headers, found.rows) == (
        ("RUN", "MAKESPAN"),
        (("a|b", "10.0 s (1.00)"), ("c", "-")),
    )
    assert markdown(found).splitlines()[2] == "| a\\|b | 10.0 s (1.00) |"


def test_the_seed_is_named_where_there_are_several() -> None:
    rows = [{"run": "a", "seed": seed, "name": "x", "arrival": 1.0} for seed in (0, 123456)]
    found = cells(rows)
    assert found.headers[:3] == ("RUN", "SEED", "JOB")
    assert [row[1] for row in found.rows] == ["0", "123456"]
    assert cells(rows[1:]).headers == ("RUN", "JOB", "ARRIVAL")
