"""Logs as they are found, through the command: out of order, repeated, of ranks, over a year."""

from __future__ import annotations

import json
from typing import Any

from helpers.tools import Tools


def read(tool: Tools, lines: list[str]) -> list[dict[str, Any]]:
    text = "".join(f"{line}\n" for line in lines)
    done = tool("dl-probe", "-", "--format", "jsonl", input=text.encode())
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_log_in_the_wrong_order_keeps_its_order(tool: Tools) -> None:
    seconds = (5, 4, 6, 1, 9)
    rows = read(
        tool, [f"2026-01-31 12:00:{s:02} step {n} loss: {9 - n}.5" for n, s in enumerate(seconds)]
    )
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["time"][17:19] for row in rows] == ["05", "05", "06", "06", "09"]


def test_the_year_changes_while_a_log_is_written(tool: Tools) -> None:
    rows = read(
        tool,
        [
            "2026-12-31 23:59:40 step 1 loss: 1.5",
            "I1231 23:59:50.0 7 x.cc:1] step 2 loss: 1.25",
            "I0101 00:00:20.0 7 x.cc:1] step 3 loss: 1.0",
            "2027-01-01 00:00:30 step 4 loss: 0.75",
        ],
    )
    assert [row["time"][:19] for row in rows] == [
        "2026-12-31T23:59:40",
        "2026-12-31T23:59:50",
        "2027-01-01T00:00:20",
        "2027-01-01T00:00:30",
    ]
