"""The package stays as small and as layered as `make structure` shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.structure import structure, this_package

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
        return structure().measure(tmp_path)

    return measured


@pytest.mark.slow
def test_few_modules_are_at_the_root() -> None:
    assert len(this_package().root_modules) <= ROOT_MODULES, this_package().root_modules


@pytest.mark.slow
def test_nothing_breaks_a_bound() -> None:
    assert structure().breaches(this_package()) == [], "`make structure` lists them all"


@pytest.mark.parametrize("graph", ["module_graph", "folder_graph", "unit_graph"])
@pytest.mark.slow
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


def test_a_small_module_with_one_importer_is_a_closet_unless_it_says_why(package: Measured) -> None:
    found = package(
        a="from dltools import b, c, d, e",
        b="",
        c='"""Does c.\n\nIt stands alone\nbecause it is a program."""',
        d="",
        e="pass\n" * 60,
        f="from dltools import d",
    )
    assert structure().breaches(found) == ["closet: dltools.b"]
    assert found.with_one_importer == {f"dltools.{name}": "dltools.a" for name in "bce"}


def test_a_member_that_a_registry_finds_by_name_is_no_closet(package: Measured) -> None:
    found = package(
        a__in__registry="from dltools.a import csv, oldest, shares",
        a__in__csv="FORMAT = 1",
        a__in__oldest="OLDEST: int = 1",
        a__in__shares="def shares(): ...",
        b="from dltools.a import registry",
    )
    assert structure().breaches(found) == ["closet: dltools.a.registry", "closet: dltools.a.shares"]


def test_modules_of_one_name_must_import_each_other(package: Measured) -> None:
    found = package(
        a__in__tables="",
        b__in__tables="from dltools.a import tables",
        a__in__logs="from dltools.a import tables",
        b__in__logs="",
        a__in__base="",
        b__in__base="",
    )
    assert [breach for breach in structure().breaches(found) if "name" in breach] == [
        "one name: dltools.a.logs",
        "one name: dltools.b.logs",
    ]


def test_each_tool_may_have_modules_of_the_same_roles(package: Measured) -> None:
    tools = {f"cli__in__{tool}__in__run": "" for tool in ("plan", "probe")}
    assert structure().breaches(package(**tools)) == []
    assert structure().breaches(package(**tools, sim__in__run="")) == [
        "one name: dltools.cli.plan.run",
        "one name: dltools.cli.probe.run",
        "one name: dltools.sim.run",
    ]


def test_what_only_passes_on_is_found(package: Measured) -> None:
    found = package(
        a="def work(x, y): ...",
        b="from dltools import a\n"
        "from dltools.a import work\n"
        "def same(x, *, y):\n    'Do it.'\n    return work(x, y=y)\n"
        "def of_module(x, y):\n    a.work(x, y)\n"
        "def turned(x, y):\n    return work(y, x)\n"
        "def usual(x, y=1):\n    return work(x, y)\n"
        "def foreign(x):\n    return len(x)\n"
        "@cache\ndef kept(x, y):\n    return work(x, y)\n"
        "class Empty:\n"
        "    def __init__(self, held): self._held = held\n"
        "    def write(self, x): return self._held.write(x)\n"
        "class Full(Empty):\n    def read(self): return self._held.read()\n"
        "class More:\n"
        "    def write(self, x): return self._held.write(x)\n"
        "    def close(self): self._held.close(); self._held = None\n",
    )
    assert found.pass_ons == ["dltools.b.same", "dltools.b.of_module", "dltools.b.Empty"]


def test_lines_that_stand_twice_are_counted(package: Measured) -> None:
    lines = [f"x{number} = {number}" for number in range(6)]
    one, other = "\n".join(lines), "\n\n".join(["import os", *lines, "# said", "y = 1"])
    assert package(a=one, b=other).duplicated_lines == 12
    assert package(a=one, b="\n".join(lines[:5])).duplicated_lines == 0
