"""Colours and dashes of lines and runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import cycle
from typing import Any

# Okabe and Ito's colours, which colour-blind people can distinguish, ordered so that neighbours
# also differ in grey; and dashes, for print.
_COLOURS = ("#0072B2", "#E69F00", "#000000", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#777777")
_DASHES: tuple[Any, ...] = (
    "-",
    "--",
    ":",
    "-.",
    (0, (5, 1)),
    (0, (1, 1)),
    (0, (3, 1, 1, 1)),
    (0, (8, 2)),
)

_POLICIES = {
    "noop": "#999999",
    "fair": "#56B4E9",
    "las": "#CC79A7",
    "slaq": "#B8A800",
    "srtf": "#D55E00",
    "flowcon": "#0072B2",
    "tradl": "#009E73",
    "dqoes": "#E69F00",
    "specon": "#882255",
}
"""Okabe and Ito's colours, two of them darker, and one more."""

_OTHER_RUNS = ("#332288", "#44AA99", "#AA4499", "#661100", "#6699CC", "#888888")


def run_colours(labels: Sequence[str]) -> dict[str, str]:
    """Return the colour of each run of a plot, by its label: one whose label names a policy, such
    as `night/srtf` or `fair-rotate`, has that policy's in every plot."""
    colours: dict[str, str] = {}
    others = cycle(_OTHER_RUNS)
    for label in labels:
        words = re.split(r"[^a-z]+", label.lower())
        policy = next((word for word in reversed(words) if word in _POLICIES), None)
        colours[label] = next(others) if policy is None else _POLICIES[policy]
    return colours


def line_style(number: int) -> dict[str, Any]:
    """Return the colour and dashes of the line of this number, from 0. The first 64 differ."""
    place = number + number // len(_COLOURS)
    return {"color": _COLOURS[number % len(_COLOURS)], "linestyle": _DASHES[place % len(_DASHES)]}
