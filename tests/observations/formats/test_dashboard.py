"""The dashboard for Grafana asks for series and labels that dl-probe writes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dltools.observations.formats.prometheus import prometheus_name
from dltools.observations.schema import COLUMNS, Instrument, Kind

DASHBOARD = json.loads(
    (Path(__file__).parents[3] / "samples" / "grafana" / "dashboard.json").read_text()
)
PANELS: list[dict[str, Any]] = [one for one in DASHBOARD["panels"] if one["type"] != "row"]
NAMES = {
    prometheus_name(column, kind): column
    for column in COLUMNS
    if column.instrument is not Instrument.ATTRIBUTE
    for kind in column.kinds
    if kind is not Kind.EVENT
}
LABELS = {column.name for column in COLUMNS if column.is_label}
VARIABLES = {one["name"] for one in DASHBOARD["templating"]["list"]}


def expressions() -> list[str]:
    found = [target["expr"] for panel in PANELS for target in panel["targets"]]
    queries = [one["query"] for one in DASHBOARD["templating"]["list"]]
    return found + [one["query"] for one in queries if isinstance(one, dict)]


@pytest.mark.parametrize("expression", expressions())
def test_series_and_labels_are_written(expression) -> None:
    names = re.findall(r"dltools_\w+", expression)
    assert names
    assert set(names) <= NAMES.keys()
    labels = re.findall(r"(\w+)=~", expression)
    labels += re.findall(r"by \((\w+)\)", expression) + re.findall(r", (\w+)\)$", expression)
    assert set(labels) <= LABELS
    variables = set(re.findall(r"\$(\w+)", expression)) - {"__rate_interval"}
    assert variables <= VARIABLES
    for name in names:
        is_counter = NAMES[name].instrument is Instrument.COUNTER
        assert (f"rate({name}" in expression) is is_counter


@pytest.mark.parametrize("panel", PANELS, ids=[one["title"] for one in PANELS])
def test_panels_are_complete(panel) -> None:
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= LABELS


def test_no_two_panels_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    ids = [one["id"] for one in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for one in DASHBOARD["panels"]:
        place = one["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert all(x < 24 for x, _ in cells)
        taken |= cells
