"""The package stays as small and as layered as `make structure` shows it."""

import pytest
from helpers.structure import circles, this_package


@pytest.mark.slow
def test_nothing_breaks_a_bound() -> None:
    assert this_package().breaches == [], "`make structure` lists them all"


@pytest.mark.parametrize("graph", ["module_graph", "folder_graph"])
@pytest.mark.slow
def test_nothing_imports_in_a_circle(graph) -> None:
    assert circles(getattr(this_package(), graph)) == []
