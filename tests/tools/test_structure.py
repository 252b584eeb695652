"""The package stays as small and as layered as `make structure` shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.structure import structure, this_package

Measured = Callable[..., Any]

ROOT_MODULES, FILE_LINES, FUNCTION_LINES = 6, 500, 60


@pytest.fixture
def package(tmp_path: Path) -> Measured:
    """Write a package of the given files and measure it."""

    def measured(**files: str) -> Any:
        for name, text in {"__init__": "", **files}.items():
            file = tmp_path / "dltools" / f"{name.replace('__in__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / "__init__.py").touch()
            file.write_text(text)
        return structure().measure(tmp_path)

    return measured


def test_few_modules_are_at_the_root() -> None:
    assert len(this_package().root_modules) <= ROOT_MODULES, this_package().root_modules


def test_no_file_is_long() -> None:
    long = {str(module.path): module.lines for module in this_package().modules.values()
            if module.lines > FILE_LINES}  # fmt: skip
    assert long == {}


def test_no_function_is_long() -> None:
    assert {
        function.name: function.lines
        for function in this_package().functions
        if function.lines > FUNCTION_LINES
    } == {}


@pytest.mark.parametrize("graph", ["module_graph", "folder_graph", "unit_graph"])
def test_nothing_imports_in_a_circle(graph: str) -> None:
    assert structure().circles(getattr(this_package(), graph)) == []


# The measure itself


def test_a_circle_of_modules_is_found(package: Measured) -> None:
    found = package(
        a__in__one="from dltools.a import two",
        a__in__two="def f():\n    from dltools.a.one import g",
        b="import dltools.a.one",
    )
    assert structure().circles(found.module_graph) == [["dltools.a.one", "dltools.a.two"]]
    assert structure().circles(found.unit_graph) == []


def test_a_circle_of_folders_is_found_where_no_modules_are_in_one(package: Measured) -> None:
    found = package(
        a__in__one="from dltools.b import three",
        a__in__two="",
        b__in__three="",
        b__in__four="from dltools.a import two",
    )
    assert structure().circles(found.module_graph) == []
    assert structure().circles(found.unit_graph) == [["dltools.a", "dltools.b"]]
    assert structure().circles(found.folder_graph) == [["dltools/a", "dltools/b"]]


def test_options_are_no_lines_of_a_function(package: Measured) -> None:
    found = package(
        tool="from typing import Annotated\n"
        "Verbose = Annotated[bool, 1]\n"
        "def tool(\n"
        "    name: str,\n"
        "    interval: Annotated[\n"
        "        float,\n"
        "        2,\n"
        "    ] = 1.0,\n"
        "    verbose: Verbose = False,\n"
        ") -> None:\n"
        "    pass\n"
    )
    (function,) = found.functions
    assert (function.lines, function.parameters, function.options) == (4, 1, 2)


def test_the_root_s_modules_are_counted_without_folders(package: Measured) -> None:
    found = package(errors="", text="", a__in__one="")
    assert found.root_modules == ["errors.py", "text.py"]
