"""The package's structure in figures: this checkout's, and beside it that of an earlier revision.

    python tests/bench/structure.py [REVISION]

A unit is a folder of the package or a module at its root. Every `import` counts, inside functions
and for type checkers too; each pair of modules is an arrow. An option of a tool (a parameter whose
annotation is `Annotated`) is a declaration: its lines are not the function's. Prints the figures,
the modules with one importer, and what breaks a bound; tests/tools/test_structure.py asserts the
bounds.
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
BEFORE = "6b1eb2d"
"""The last revision before small modules were merged."""

FILE_LINES, FUNCTION_LINES = 500, 60
SMALL = 60
"""Lines below which a module that one other imports must say why it stands alone."""

STANDS_ALONE = "stands alone because"
"""Words by which a docstring says so: "It stands alone because it is started as a process."."""

SAME_IN_EACH_TOOL = ("command", "exits", "request", "run", "tables")
"""Modules that the folder of each tool under cli/ has, with the same role."""

SAME_IN_EACH_FAMILY = ("base", "interface", "registry")
"""Modules that say what a member of a family must offer, and which members there are."""

DUPLICATED = 6
"""Lines in a row that make a duplicate where they stand twice."""

Graph = Mapping[str, set[str]]


@dataclass(frozen=True)
class Module:
    """A module: its dotted name, how many lines its file has, those of code, its tree and nodes."""

    name: str
    path: Path
    lines: int
    code: list[str]
    tree: ast.Module
    nodes: list[ast.AST]

    @property
    def unit(self) -> str:
        """The folder or root module that it belongs to; the package's name for the package."""
        return ".".join(self.name.split(".")[:2])

    @property
    def stem(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    @property
    def tells_why_alone(self) -> bool:
        """Whether its docstring says why it stands alone."""
        return STANDS_ALONE in " ".join((ast.get_docstring(self.tree) or "").split())


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
    def importers(self) -> dict[str, set[str]]:
        """The modules, each with those that import it."""
        return graph(self.modules, [(other, one) for one, other in self.imports])

    @property
    def with_one_importer(self) -> dict[str, str]:
        """The modules that one other imports, with that one. Folders do not count."""
        return {
            name: next(iter(importers))
            for name, importers in self.importers.items()
            if len(importers) == 1 and self.modules[name].stem != "__init__"
        }

    @property
    def closets(self) -> list[Module]:
        """The small modules that one other imports, and that do not say why they stand alone."""
        found = [self.modules[name] for name in self.with_one_importer]
        return [
            module
            for module in found
            if module.lines < SMALL and not self._is_member(module) and not module.tells_why_alone
        ]

    def _is_member(self, module: Module) -> bool:
        """Tell whether a module is a member of a family: it has what the registry looks for."""
        has_registry = f"{module.name.rpartition('.')[0]}.registry" in self.modules
        defined = defined_names(module.tree)
        return "Log" in defined or (
            has_registry and bool(defined & {"FORMAT", module.stem.upper()})
        )

    @property
    def homonyms(self) -> list[list[Module]]:
        """The modules that share a name with others, and are not known to be about the same.

        Two are about the same where one imports the other. Members of a family have the names of
        what they read.
        """
        by_stem: dict[str, list[Module]] = {}
        for module in self.modules.values():
            is_free = module.stem in ("__init__", *SAME_IN_EACH_FAMILY)
            if not is_free and not self._is_member(module):
                by_stem.setdefault(module.stem, []).append(module)
        return [
            same for same in by_stem.values() if len(same) > 1 and not self._is_one_matter(same)
        ]

    def _is_one_matter(self, same: list[Module]) -> bool:
        """Tell whether imports join all of these; modules of one role in each tool count as one."""
        names = {module.name: matter(module) for module in same}
        pairs = {(names[a], names[b]) for a, b in self.imports if a in names and b in names}
        joined = graph(names.values(), [*pairs, *((b, a) for a, b in pairs)])
        start = next(iter(joined))
        return {start} | reachable(start, joined) == set(joined)

    @property
    def pass_ons(self) -> list[str]:
        """The functions and classes that only pass their arguments on."""
        return [
            f"{module.name}.{name}"
            for module in self.modules.values()
            for name in passing_on(module)
        ]

    @property
    def duplicated_lines(self) -> int:
        """How many lines of code stand in a run of `DUPLICATED` that stands elsewhere too."""
        runs: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        for module in self.modules.values():
            lines = module.code
            for at in range(len(lines) - DUPLICATED + 1):
                run = tuple(lines[at : at + DUPLICATED])
                runs.setdefault(run, []).append((module.name, at))
        places = [place for found in runs.values() if len(found) > 1 for place in found]
        return len({(name, at + more) for name, at in places for more in range(DUPLICATED)})

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
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found |= {whole} & known.keys() or {node.module} & known.keys()
    return found - {module.name}


def defined_names(tree: ast.Module) -> set[str]:
    """Return the names of classes, functions and constants at the top of a module."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {last_name(target) for target in node.targets}
        elif isinstance(node, ast.AnnAssign):
            found.add(last_name(node.target))
    return found


def matter(module: Module) -> str:
    """Return what a module counts as where names are compared."""
    parts = module.name.split(".")
    is_of_tool = len(parts) == 4 and parts[1] == "cli" and module.stem in SAME_IN_EACH_TOOL
    return f"{PACKAGE}.cli.*.{module.stem}" if is_of_tool else module.name


def passing_on(module: Module) -> Iterator[str]:
    """Yield the functions at the top that hand exactly their parameters to a function of the
    package, and the classes of which every method does so with a method of what they hold.

    A default value or a decorator is something of one's own, and so is a method of a value that the
    module holds, such as an expression.
    """
    own = defined_names(module.tree) | {
        alias.asname or alias.name
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)
        for alias in node.names
    }
    held = {
        target.id
        for node in module.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef):
            callee = handed_on(node)
            is_method = isinstance(callee, ast.Attribute)
            root = callee.value if isinstance(callee, ast.Attribute) else callee
            if isinstance(root, ast.Name) and root.id in (own - held if is_method else own):
                yield node.name
        elif isinstance(node, ast.ClassDef) and not node.bases:
            methods = [
                one
                for one in node.body
                if isinstance(one, ast.FunctionDef) and one.name != "__init__"
            ]
            if methods and all(is_of_held(handed_on(method)) for method in methods):
                yield node.name


def handed_on(function: ast.FunctionDef) -> ast.expr | None:
    """Return what a function calls, if it does nothing else, and with exactly its parameters."""
    body = [one for one in function.body if not is_docstring(one)]
    given = function.args
    if len(body) != 1 or function.decorator_list or given.defaults or any(given.kw_defaults):
        return None
    if not isinstance(body[0], ast.Return | ast.Expr) or not isinstance(body[0].value, ast.Call):
        return None
    call = body[0].value
    passed = [ast.unparse(one) for one in call.args]
    passed += [ast.unparse(one.value) for one in call.keywords]
    own = [one.arg for one in given.posonlyargs + given.args if one.arg not in ("self", "cls")]
    own += [f"*{given.vararg.arg}"] if given.vararg else []
    own += [one.arg for one in given.kwonlyargs]
    own += [given.kwarg.arg] if given.kwarg else []
    return call.func if passed == own else None


def is_of_held(callee: ast.expr | None) -> bool:
    """Tell whether an expression is `self.held.method`."""
    held = callee.value if isinstance(callee, ast.Attribute) else None
    return isinstance(held, ast.Attribute) and last_name(held.value) == "self"


def is_docstring(node: ast.AST) -> bool:
    """Tell whether a statement is a text alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def code_lines(text: str, nodes: Iterable[ast.AST]) -> list[str]:
    """Return the lines of a module, without comments, docstrings and imports."""
    left_out: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) or is_docstring(node):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return [line for at, line in lines if at not in left_out and line and line[0] != "#"]


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
    for node in module.nodes:
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
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        lines, code = len(text.splitlines()), code_lines(text, nodes)
        modules[name] = Module(name, path, lines, code, tree, nodes)
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
    lines = [module.lines for module in found.modules.values()]
    return {
        "modules": str(len(found.modules)),
        "lines": str(sum(lines)),
        "arrows between modules": str(len(found.imports)),
        f"modules under {SMALL} lines": str(sum(size < SMALL for size in lines)),
        "modules with one importer": str(len(found.with_one_importer)),
        "of these small, without a reason": str(len(found.closets)),
        "names of modules on several matters": str(len(found.homonyms)),
        "functions and classes that pass on": str(len(found.pass_ons)),
        f"lines in duplicates of {DUPLICATED}": str(found.duplicated_lines),
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


def breaches(found: Structure) -> list[str]:
    """Return what breaks a bound, each as a word and the place."""
    files = [module for module in found.modules.values() if module.lines > FILE_LINES]
    functions = [one for one in found.functions if one.lines > FUNCTION_LINES]
    return sorted(
        [
            *(f"long file: {module.name}" for module in files),
            *(f"long function: {function.name}" for function in functions),
            *(f"closet: {module.name}" for module in found.closets),
            *(f"one name: {module.name}" for same in found.homonyms for module in same),
            *(f"passes on: {name}" for name in found.pass_ons),
        ]
    )


def print_details(found: Structure) -> None:
    """Print the modules with one importer, the smallest first, and what breaks a bound."""
    print("\nmodules with one importer:")
    alone = found.with_one_importer
    for name in sorted(alone, key=lambda name: (found.modules[name].lines, name)):
        print(f"  {found.modules[name].lines:4} {name}, by {alone[name]}")
    print("\nbreaches:")
    for breach in breaches(found) or ["none"]:
        print(f"  {breach}")


def main() -> None:
    revision = sys.argv[1] if len(sys.argv) > 1 else BEFORE
    now = measure(ROOT)
    columns = {"now": rows(now)}
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
    print_details(now)


if __name__ == "__main__":
    main()
