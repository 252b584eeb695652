"""The package stays as small and as layered as `make structure` shows it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.structure import circles, measure, this_package

Measured = Callable[..., Any]

ROOT_MODULES = 6


@pytest.fixture
def package(tmp_path: Path) -> Measured:
    """Write a package of the given files and measure it."""

    def measured(**files: str) -> Any:
        for name, text in {"__init__": "", **files}.items():
            file = tmp_path / "dltools" / f"{name.replace('__in__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / "__init__.py").touch()
            file.write_text(text)
        return measure(tmp_path)

    return measured


@pytest.mark.slow
def test_few_modules_are_at_the_root() -> None:
    assert len(this_package().root_modules) <= ROOT_MODULES, this_package().root_modules


@pytest.mark.slow
def test_nothing_breaks_a_bound() -> None:
    assert this_package().breaches == [], "`make structure` lists them all"


@pytest.mark.parametrize("graph", ["module_graph", "folder_graph", "unit_graph"])
@pytest.mark.slow
def test_nothing_imports_in_a_circle(graph) -> None:
    assert circles(getattr(this_package(), graph)) == []


# The measure itself


def test_a_circle_of_modules_is_found(package) -> None:
    found = package(
        a__in__one="from dltools.a import two",
        a__in__two="def f():\n    from dltools.a.one import g",
        b="import dltools.a.one",
    )
    assert circles(found.module_graph) == [["dltools.a.one", "dltools.a.two"]]
    assert circles(found.unit_graph) == []


def test_a_circle_of_folders_is_found_where_no_modules_are_in_one(package) -> None:
    found = package(
        a__in__one="from dltools.b import three",
        a__in__two="",
        b__in__three="",
        b__in__four="from dltools.a import two",
    )
    assert circles(found.module_graph) == []
    assert circles(found.unit_graph) == [["dltools.a", "dltools.b"]]
    assert circles(found.folder_graph) == [["dltools/a", "dltools/b"]]


def test_a_small_module_with_one_importer_is_a_closet_unless_it_says_why(package) -> None:
    found = package(
        a="from dltools import b, c, d, e",
        b="",
        c='"""Does c.\n\nIt stands alone\nbecause it is a program."""',
        d="",
        e="pass\n" * 60,
        f="from dltools import d",
    )
    assert found.breaches == ["closet: dltools.b"]
    assert found.with_one_importer == {f"dltools.{name}": "dltools.a" for name in "bce"}
