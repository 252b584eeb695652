"""The package's structure in figures: this checkout's, and beside it that of an earlier revision.

    python tests/bench/structure.py [REVISION]

A unit is a folder of the package or a module at its root. Every `import` counts, inside functions
and for type checkers too. An option of a tool (a parameter whose annotation is `Annotated`) is a
declaration: its lines are not the function's. Prints; tests/tools/test_structure.py asserts bounds.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "dltools"
BEFORE = "d895393"
"""The last revision before each step got a folder of its own."""

Graph = Mapping[str, set[str]]


@dataclass(frozen=True)
class Module:
    """A module: its dotted name, its file's lines, and what it says."""

    name: str
    path: Path
    lines: int
    tree: ast.Module

    @property
    def unit(self) -> str:
        """The folder or root module that it belongs to; the package's name for the package."""
        return ".".join(self.name.split(".")[:2])


@dataclass(frozen=True)
class Function:
    """A function: its name, its lines and its parameters without options, and its options."""

    name: str
    lines: int
    parameters: int
    options: int


@dataclass(frozen=True)
class Structure:
    """What is told of a package."""

    modules: dict[str, Module]
    imports: list[tuple[str, str]]
    """Pairs of modules, one for each imported name's module in each importing module."""
    functions: list[Function]

    @property
    def root_modules(self) -> list[str]:
        """The modules at the package's root, beside `__init__`."""
        return sorted(
            module.path.name
            for module in self.modules.values()
            if module.name.count(".") == 1 and module.path.name != "__init__.py"
        )

    @property
    def between_units(self) -> list[tuple[str, str]]:
        """The imports that leave a unit, as pairs of units, one for each import."""
        units = [(self.modules[one].unit, self.modules[other].unit) for one, other in self.imports]
        return [(one, other) for one, other in units if one != other and other != PACKAGE]

    @property
    def unit_graph(self) -> dict[str, set[str]]:
        """The units, each with those that it imports."""
        units = {module.unit for module in self.modules.values()} - {PACKAGE}
        return graph(units, self.between_units)

    @property
    def module_graph(self) -> dict[str, set[str]]:
        """The modules, each with those that it imports."""
        return graph(self.modules, self.imports)

    @property
    def folder_graph(self) -> dict[str, set[str]]:
        """The folders at every depth, the root among them, each with those that it imports."""
        folders = {name: module.path.parent for name, module in self.modules.items()}
        pairs = [(str(folders[one]), str(folders[other])) for one, other in self.imports]
        return graph(map(str, folders.values()), [(a, b) for a, b in pairs if a != b])

    @property
    def longest_file(self) -> Module:
        """The module with most lines."""
        return max(self.modules.values(), key=lambda module: module.lines)

    @property
    def longest_function(self) -> Function:
        """The function with most lines."""
        return max(self.functions, key=lambda function: function.lines)

    @property
    def most_parameters(self) -> Function:
        """The function with most parameters."""
        return max(self.functions, key=lambda function: function.parameters)

    @property
    def most_options(self) -> Function:
        """The function with most options."""
        return max(self.functions, key=lambda function: function.options)


def graph(nodes: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return all nodes, each with the ends of its arrows."""
    found: dict[str, set[str]] = {node: set() for node in nodes}
    for one, other in pairs:
        found[one].add(other)
    return found


def reachable(start: str, arrows: Graph) -> set[str]:
    """Return what can be reached from a node, itself only if it is in a circle."""
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(arrows[node])
    return found


def circles(arrows: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node, sorted."""
    reach = {node: reachable(node, arrows) for node in arrows}
    found = {
        tuple(sorted(other for other in reached if node in reach[other]))
        for node, reached in reach.items()
        if node in reached
    }
    return sorted(list(circle) for circle in found if len(circle) > 1)


def floors(arrows: Graph) -> int:
    """Return how many nodes the longest chain of arrows has; a circle counts as one node."""
    of = {node: circle[0] for circle in circles(arrows) for node in circle}
    above = graph(
        {of.get(node, node) for node in arrows},
        [
            (of.get(one, one), of.get(other, other))
            for one, others in arrows.items()
            for other in others
            if of.get(one, one) != of.get(other, other)
        ],
    )
    heights: dict[str, int] = {}
    for node in TopologicalSorter(above).static_order():
        heights[node] = 1 + max((heights[other] for other in above[node]), default=0)
    return max(heights.values())


def imported(module: Module, known: Mapping[str, object]) -> set[str]:
    """Return the modules of the package that a module imports."""
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found |= {whole} & known.keys() or {node.module} & known.keys()
    return found - {module.name}


def last_name(node: ast.expr | None) -> str:
    """Return the last part of a dotted name, "" of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_annotated(node: ast.expr | None) -> bool:
    """Tell whether an expression is `Annotated[...]`."""
    return isinstance(node, ast.Subscript) and last_name(node.value) == "Annotated"


def option_names(modules: Iterable[Module]) -> set[str]:
    """Return the names that stand for an `Annotated[...]` at the top of a module."""
    return {
        last_name(node.targets[0])
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.Assign) and is_annotated(node.value)
    }


def functions(module: Module, options: set[str]) -> Iterator[Function]:
    """Yield every function and method of a module, nested ones too."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        given = node.args.posonlyargs + node.args.args
        defaults = [None] * (len(given) - len(node.args.defaults)) + node.args.defaults
        pairs = [*zip(given, defaults, strict=True)]
        pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        plain = [arg for arg in (node.args.vararg, node.args.kwarg) if arg]
        declared: set[int] = set()
        count = 0
        for argument, default in pairs:
            if is_annotated(argument.annotation) or last_name(argument.annotation) in options:
                end = (default or argument).end_lineno or argument.lineno
                declared |= set(range(argument.lineno, end + 1))
                count += 1
            elif argument.arg not in ("self", "cls"):
                plain.append(argument)
        lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1)) - declared
        yield Function(f"{module.name}.{node.name}", len(lines), len(plain), count)


def measure(directory: Path) -> Structure:
    """Read a package of a directory."""
    modules = {}
    for file in sorted((directory / PACKAGE).rglob("*.py")):
        path = file.relative_to(directory)
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text()
        modules[name] = Module(name, path, len(text.splitlines()), ast.parse(text))
    options = option_names(modules.values())
    return Structure(
        modules,
        [(name, other) for name, module in modules.items() for other in imported(module, modules)],
        [function for module in modules.values() for function in functions(module, options)],
    )


def of_revision(revision: str) -> Structure | None:
    """Read the package as it was at a revision; None where the repository has no such revision."""
    archive = ["git", "-C", str(ROOT), "archive", "--format=tar", revision, PACKAGE]
    try:
        packed = subprocess.run(archive, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    with tempfile.TemporaryDirectory() as directory:
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(directory, filter="data")
        return measure(Path(directory))


def rows(found: Structure) -> dict[str, str]:
    """Return the figures of a structure by what they are."""
    function, most, tool = found.longest_function, found.most_parameters, found.most_options
    return {
        "modules": str(len(found.modules)),
        "modules at the root": str(len(found.root_modules)),
        "arrows between units": str(sum(map(len, found.unit_graph.values()))),
        "imports between units": str(len(found.between_units)),
        "floors of units": str(floors(found.unit_graph)),
        "circles of units": str(len(circles(found.unit_graph))),
        "circles of folders": str(len(circles(found.folder_graph))),
        "circles of modules": str(len(circles(found.module_graph))),
        "lines of the longest file": f"{found.longest_file.lines} {found.longest_file.path}",
        "lines of the longest function": f"{function.lines} {function.name}",
        "most parameters": f"{most.parameters} {most.name}",
        "most options of a tool": f"{tool.options} {tool.name}",
    }


def main() -> None:
    revision = sys.argv[1] if len(sys.argv) > 1 else BEFORE
    columns = {"now": rows(measure(ROOT))}
    if before := of_revision(revision):
        columns = {revision[:12]: rows(before)} | columns
    names = list(columns["now"])
    table = [
        ["", *columns],
        *([name, *(column[name] for column in columns.values())] for name in names),
    ]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for line in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


if __name__ == "__main__":
    main()
