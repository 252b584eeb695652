"""The package stays as small and as layered as `make structure` shows it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
Measured = Callable[..., Any]

ROOT_MODULES, FUNCTION_LINES = 6, 60


@pytest.fixture(scope="module")
def structure() -> ModuleType:
    """tests/bench/structure.py as a module."""
    spec = importlib.util.spec_from_file_location("structure", ROOT / "tests/bench/structure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["structure"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(structure: ModuleType, tmp_path: Path) -> Measured:
    """Write a package of the given files and measure it."""

    def measured(**files: str) -> Any:
        for name, text in {"__init__": "", **files}.items():
            file = tmp_path / "dltools" / f"{name.replace('__in__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / "__init__.py").touch()
            file.write_text(text)
        return structure.measure(tmp_path)

    return measured


@pytest.fixture(scope="module")
def ours(structure: ModuleType) -> Any:
    return structure.measure(ROOT)


def test_few_modules_are_at_the_root(ours: Any) -> None:
    assert len(ours.root_modules) <= ROOT_MODULES, ours.root_modules


def test_no_function_is_long(ours: Any) -> None:
    assert {
        function.name: function.lines
        for function in ours.functions
        if function.lines > FUNCTION_LINES
    } == {}


@pytest.mark.parametrize("graph", ["module_graph", "folder_graph", "unit_graph"])
def test_nothing_imports_in_a_circle(structure: ModuleType, ours: Any, graph: str) -> None:
    assert structure.circles(getattr(ours, graph)) == []


# The measure itself


def test_a_circle_of_modules_is_found(structure: ModuleType, package: Measured) -> None:
    found = package(
        a__in__one="from dltools.a import two",
        a__in__two="def f():\n    from dltools.a.one import g",
        b="import dltools.a.one",
    )
    assert structure.circles(found.module_graph) == [["dltools.a.one", "dltools.a.two"]]
    assert structure.circles(found.unit_graph) == []


def test_a_circle_of_folders_is_found_where_no_modules_are_in_one(
    structure: ModuleType, package: Measured
) -> None:
    found = package(
        a__in__one="from dltools.b import three",
        a__in__two="",
        b__in__three="",
        b__in__four="from dltools.a import two",
    )
    assert structure.circles(found.module_graph) == []
    assert structure.circles(found.unit_graph) == [["dltools.a", "dltools.b"]]
    assert structure.circles(found.folder_graph) == [["dltools/a", "dltools/b"]]


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
